"""What decides: the controller of a run, its state machine and its rules."""
