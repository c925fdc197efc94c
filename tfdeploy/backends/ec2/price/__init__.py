"""Capacity, prices and costs."""
