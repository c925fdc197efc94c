"""The record of runs on disk: state, events, output and artifacts."""
