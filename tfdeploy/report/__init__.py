"""The record and the observed state become tables, metrics, events and a page. Pure, except for `follow`."""
