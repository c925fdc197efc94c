"""What shutdown tells process 1: systemd's own signals."""

import signal

POWER_OFF = signal.SIGRTMIN + 4
REBOOT = signal.SIGRTMIN + 5
EXIT_OF_REBOOT = 64
"""By this exit code of process 1 the box knows that the machine is to start again."""
