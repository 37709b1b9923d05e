"""An encoder after H2GCN (Zhu et al., 2020): means of neighbours, one and more hops away, beside
each other.
"""

import torch
from torch import nn
from torch_geometric.utils import scatter


class H2GCNLike(nn.Module):
    def __init__(self, features, hidden, layers, classes, dropout=0.0):
        super().__init__()
        self.layers, self.dropout = layers, nn.Dropout(dropout)
        self.embed = nn.Linear(features, hidden)
        self.classify = nn.Linear((layers + 1) * hidden, classes)

    def reset_parameters(self):
        self.embed.reset_parameters()
        self.classify.reset_parameters()

    def forward(self, x, edge_index):
        hops = [torch.relu(self.embed(x))]
        for _ in range(self.layers):
            sent = hops[-1][edge_index[0]]
            hops.append(scatter(sent, edge_index[1], dim_size=len(x), reduce="mean"))
        return self.classify(self.dropout(torch.cat(hops, dim=1)))


ENCODERS = {"h2gcn_like": H2GCNLike}
