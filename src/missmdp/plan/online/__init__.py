"""Planning while acting, with bounds: a tree of beliefs from the current one, with bounds at its leaves.

`solver` is `OnlinePlanner` and its policy, `agent` what is deployed, `bounds` what is known of every state before the
first decision, and `search` what a search is given. The kernels are in `_kernels.online`.
"""
