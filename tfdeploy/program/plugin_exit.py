"""The end of a plugin when Pulumi's engine is gone, and of its work when the engine has received a signal.

The engine ends its plugins, unless it dies: by SIGKILL, or by SIGHUP when its terminal is closed. Then the process of the dynamic
resources, and the shell that has started it, would keep every file descriptor that they inherited, such as a lock or a pipe. Pulumi's
code in them does not notice, so they hold a connection to the engine's address, which the kernel closes with the engine.
"""

import os
import signal
import socket
import sys
import threading
import time
from functools import cache
from typing import Any

from .tracebacks import is_plugin

_GRACE_SECONDS = 5.0
"""So long may calls continue that have begun. The engine gives a plugin as long when it ends it."""

_PAUSE_SECONDS = 1.0
"""Between two connections. The engine closes a silent one after two minutes."""


@cache
def follow_engine() -> None:
    """End this process, which is a plugin, with the engine that has started it. Its address is the last argument."""
    _hear_cancel()
    host, _, port = sys.argv[-1].rpartition(":")
    if port.isdecimal():
        threading.Thread(target=_follow, args=((host, int(port)),), name="tfdeploy-engine", daemon=True).start()


_cancelled = threading.Event()


def is_cancelled() -> bool:
    """Whether the engine has asked this plugin to end what it does: `pulumi` has received SIGINT or SIGTERM, and waits for that."""
    return _cancelled.is_set()


def _hear_cancel() -> None:
    """Pulumi's code in the process of dynamic resources ignores the request, and has registered its method with the server already: so
    only what the method does can be replaced."""
    plugin = sys.modules["__main__"]
    servicer = getattr(plugin, "DynamicResourceProviderServicer", None)
    if servicer is not None:
        servicer.Cancel.requested, servicer.Cancel.response = _cancelled, vars(plugin)["empty_pb2"].Empty
        servicer.Cancel.__code__ = _cancel.__code__


def _cancel(self: Any, _request: Any, _context: Any) -> Any:
    """Its globals are those of the method that it replaces."""
    type(self).Cancel.requested.set()
    return type(self).Cancel.response()


def _follow(address: tuple[str, int]) -> None:
    is_known = False
    while _is_listening(address):
        is_known = True
        time.sleep(_PAUSE_SECONDS)
    if is_known:
        _end()


def _is_listening(address: tuple[str, int]) -> bool:
    """Whether a process accepts connections there, as it was when the last connection ended."""
    try:
        with socket.create_connection(address) as connection:
            while connection.recv(1024):
                pass
    except ConnectionRefusedError:
        return False
    except OSError:
        pass
    return True


def _end() -> None:
    # Pulumi's code stops its server, and Python waits for the threads of the calls. A shell ends with its only command.
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_GRACE_SECONDS)
    # The engine starts each plugin as a new process group. For the dynamic resources its leader is the shell.
    if os.getpgrp() == os.getpid() or (is_plugin() and os.getpgrp() == os.getppid()):
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
