"""Draw a digit, and the newest model classifies it: `python serve.py [FOLDER] [--port PORT]`, on this machine alone.

FOLDER is the cluster's `train_dir`. Each run exports to its own folder in it; the newest export is used as soon as it exists.
"""

import argparse
import json
import os
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
LONGEST = 20_000
"""The largest request in bytes: 784 numbers and their separators."""


class Models:
    """The exports in a folder; the newest of them is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.name, self.model = "", None

    def newest(self) -> Path | None:
        exported = [path for path in self.folder.glob("*/export/*/saved_model.pb") if path.is_file()]
        return max(exported, key=lambda path: path.stat().st_mtime).parent if exported else None

    def current(self) -> tuple[str, Any]:
        """The newest model and its name: run and step."""
        with self.lock:
            path = self.newest()
            name = f"{path.parent.parent.name}/{path.name}" if path else ""
            if path and name != self.name:
                self.name, self.model = name, tf.saved_model.load(str(path))
                print(f"model {name}", flush=True)
            return self.name, self.model

    def classify(self, image: Any) -> dict[str, Any]:
        name, model = self.current()
        if model is None:
            return {"model": "", "digit": None}
        chances = model.serve(tf.constant(image))[0].numpy()
        return {
            "model": name,
            "digit": int(chances.argmax()),
            "chances": [round(float(chance), 4) for chance in chances],
        }


def image_of(text: bytes) -> Any:
    """28 rows of 28 numbers from 0 to 1.

    Raises:
        ValueError: it is something else.
    """
    image = np.array(json.loads(text), dtype="float32").reshape((1, 28, 28))
    if not (np.isfinite(image).all() and image.min() >= 0 and image.max() <= 1):
        raise ValueError("numbers from 0 to 1")
    return image


class Handler(BaseHTTPRequestHandler):
    models: Models

    def do_GET(self) -> None:
        if self.path == "/":
            self.reply(200, "text/html; charset=utf-8", (HERE / "page.html").read_bytes())
        elif self.path == "/model":
            self.respond({"model": self.models.current()[0]})
        else:
            self.reply(404, "text/plain", b"no such page\n")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != "/digit" or not 0 < length <= LONGEST:
            self.reply(404, "text/plain", b"POST /digit takes a drawing\n")
            return
        try:
            image = image_of(self.rfile.read(length))
        except (ValueError, TypeError):
            self.reply(400, "text/plain", b"a drawing is 784 numbers from 0 to 1, as JSON\n")
            return
        self.respond(self.models.classify(image))

    def respond(self, value: dict[str, Any]) -> None:
        self.reply(200, "application/json", json.dumps(value).encode())

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: only the loaded models are logged."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw a digit, and the newest model classifies it.")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "models")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    args = parser.parse_args()
    Handler.models = Models(args.folder)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    print(f"serving at http://127.0.0.1:{server.server_port}/", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
