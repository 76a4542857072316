"""The paper's experiments as a grid of cells, and everything that is made from the finished ones.

`config` says what is run, `plan` lists the cells, `cells` has their kinds and does the work, `runner` runs what is
missing. `summary` turns finished cells into tables, `findings` compares them with the theory, `text` puts them into
words and rounded tables. `pictures` and `curve_pictures` draw the figures (`style` has what they share); `page` and
`page_charts` write report.html.
"""
