"""A small kit for HTML pages that need nothing but themselves: no files, no network, no scripts to load.

markup        text and markup, told apart by their types: what is not markup is escaped
svg           drawings, scales and ticks, in a wide and a narrow version
row_charts    rows of dots with intervals, and rows of bars
bounds_chart  two bounds that close in on each other over time
graph_chart   m-graphs
notebook      small tables for notebooks
page          sections, figures, tables and notes; `page` puts them together (style.css)
"""
