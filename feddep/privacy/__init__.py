"""DP-SGD, and accountants of DP-SGD and of neighbour sampling."""
