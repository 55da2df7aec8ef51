"""A local S3 server for the tests: moto's, with what a test of writers needs of it.

In: a port, or 0 for a free one. Out: its address on standard output, then requests answered until the process is ended.
`PUT` is done one at a time, because the server itself looks whether a key is there and writes it in two steps. With
`GET /-/faults?every=N` each N-th request from then on is answered with 503 and not done, 0 for none; the answer says how many
were. With `GET /-/lost?times=N` the next N puts of a log's entry are done and their answers lost, as on a bad line.
"""

import sys
import threading
from urllib.parse import parse_qs

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

moto = DomainDispatcherApplication(create_backend_app)
counting, putting = threading.Lock(), threading.Lock()
state = {"every": 0, "asked": 0, "failed": 0, "lost": 0}


def control(environ):
    asked = {key: int(values[0]) for key, values in parse_qs(environ["QUERY_STRING"]).items()}
    with counting:
        failed, state["failed"] = state["failed"], 0
        state.update({"every": asked.get("every", state["every"]), "lost": asked.get("times", state["lost"])})
    return str(failed).encode()


def app(environ, start_response):
    path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
    if path.startswith("/-/"):
        answer = control(environ)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
        return [answer]
    is_entry = method == "PUT" and "/_delta_log/" in path and path.endswith(".json")
    with counting:
        state["asked"] += 1
        is_failed = state["every"] > 0 and state["asked"] % state["every"] == 0
        is_lost = is_entry and state["lost"] > 0
        state["failed"] += is_failed
        state["lost"] -= is_lost
    if is_failed or is_lost:
        # What was sent has to be read, or the next request on the line begins in the middle of it.
        if is_lost:
            with putting:
                b"".join(moto(environ, lambda *_: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response("503 Slow Down", [("Content-Type", "text/plain")])
        return [b"slow down"]
    if method == "PUT":
        with putting:
            return list(moto(environ, start_response))
    return moto(environ, start_response)


Client(moto).put("/gpuledger-tests", base_url="http://127.0.0.1")
server = make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
