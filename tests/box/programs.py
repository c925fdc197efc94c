"""What the tests of the box have its machines run."""

ASK = """\
import socket, sys, urllib.request
mark, method, path, header = int(sys.argv[1]), *sys.argv[2:]
connect = socket.socket.connect
def marked(self, address):
    if mark:
        self.setsockopt(socket.SOL_SOCKET, 36, mark)
    return connect(self, address)
socket.socket.connect = marked
name, _, value = header.partition("=")
headers = {name: value} if name else {}
request = urllib.request.Request(f"http://169.254.169.254/latest/{path}", method=method, headers=headers)
try:
    print(urllib.request.urlopen(request, timeout=2).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print(getattr(error, "reason", error))
"""
"""Asks the metadata service, by a socket with a mark; SO_MARK is 36."""
UNIT = """\
[Unit]
Description=Tested
Before=docker.service

[Service]
Environment=WORD=hello
ExecStartPre=-/bin/false
ExecStartPre=/bin/sh -c 'docker version >/dev/null 2>&1 && echo later >>/root/order || echo sooner >>/root/order'
ExecStart=/bin/sh /root/serve
Restart=always
RestartSec=0.2
StandardOutput=journal+console

[Install]
WantedBy=multi-user.target
"""
SERVE = """\
trap 'docker version >/dev/null 2>&1 && echo engine lives || echo engine is gone; exit 0' TERM
echo "$WORD from $$"
while :; do sleep 0.1; done
"""
USER_DATA = f"""#!/bin/sh
cat >/root/ask <<'END'
{ASK}END
cat >/root/serve <<'END'
{SERVE}END
cat >/etc/systemd/system/tested.service <<'END'
{UNIT}END
printf '[Service]\\nExecStartPre=/bin/false\\nExecStart=/bin/true\\n' >/etc/systemd/system/failing.service
printf '[Service]\\nMemoryMax=1G\\nExecStart=/bin/true\\n' >/etc/systemd/system/unknown.service
systemctl daemon-reload
systemctl enable --now tested.service
"""
"""The services `tested`, which runs, `failing` and `unknown`; /root/ask."""
