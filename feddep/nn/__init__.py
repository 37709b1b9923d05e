"""Neural networks on graphs: the layers and models that the papers define."""
