"""Signals: the main thread waits for them, and other threads end that wait."""

import signal
import threading
from typing import Set


def wait_for_signal(numbers: Set[signal.Signals], seconds: float) -> int:
    """Wait for one of these blocked signals, and return its number; 0 for none. SIGALRM must be blocked too, in all threads.

    `sigtimedwait` is not used: when SIGCONT interrupts it after its time, as for a container that was frozen, Python returns an
    uninitialized `struct_siginfo`, and its number may be that of SIGINT.
    """
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    number = signal.sigwait({*numbers, signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 0)
    return 0 if number == signal.SIGALRM else number


def signal_name(number: int) -> str:
    """The name of a signal, as `kill -l` lists it. Python names only the first and the last of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        is_real_time = signal.SIGRTMIN < number < signal.SIGRTMAX
        return f"SIGRTMIN+{number - signal.SIGRTMIN}" if is_real_time else f"SIG{number}"


def wake_main_thread() -> None:
    """End the main thread's `wait_for_signal`, or its next one, which takes this signal for that of its timer."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
