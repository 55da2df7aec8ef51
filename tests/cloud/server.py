"""A local S3 server for the tests: moto's, with what a test of writers needs of it.

In: a port, or 0 for a free one. Out: its address on standard output, then requests answered until the process is ended.
`PUT` is done one at a time, because the server itself looks whether a key is there and writes it in two steps.

`GET /-/?under=PREFIX` has requests fail whose key or list is below PREFIX, until the next such request; its answer says how often they did
since the last one. `every=N` answers each N-th with 503 and does not do it. `lost=N` does the next N puts of a log's entry and
loses their answers, as on a bad line. `deaf=1` puts over what is there although it is asked not to, as old servers do.
"""

import sys
import threading
from urllib.parse import parse_qs, unquote

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

moto = DomainDispatcherApplication(create_backend_app)
counting, putting = threading.Lock(), threading.Lock()
state = {"under": None, "every": 0, "lost": 0, "deaf": 0, "asked": 0, "failed": 0}


def control(environ):
    asked = {key: values[0] for key, values in parse_qs(environ["QUERY_STRING"]).items()}
    with counting:
        failed = state["failed"]
        state.update({"under": asked.get("under"), "asked": 0, "failed": 0})
        state.update({name: int(asked.get(name, 0)) for name in ("every", "lost", "deaf")})
    return str(failed).encode()


def fault(asked, is_entry):
    """What this request meets: nothing, a failure, a lost answer, or a server that does not listen."""
    with counting:
        if state["under"] is None or state["under"] not in asked:
            return None
        state["asked"] += 1
        if state["every"] and state["asked"] % state["every"] == 0:
            state["failed"] += 1
            return "failed"
        if is_entry and state["lost"]:
            state["lost"] -= 1
            state["failed"] += 1
            return "lost"
        return "deaf" if state["deaf"] else None


def app(environ, start_response):
    path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
    if path.startswith("/-/"):
        answer = control(environ)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
        return [answer]
    asked = f"{path}?{unquote(environ['QUERY_STRING'])}"
    met = fault(asked, method == "PUT" and "/_delta_log/" in path and path.endswith(".json"))
    if met == "deaf":
        environ.pop("HTTP_IF_NONE_MATCH", None)
    elif met == "lost":
        with putting:
            b"".join(moto(environ, lambda *_: None))
    elif met == "failed":
        # What was sent has to be read, or the next request on the line begins in the middle of it.
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if met in ("failed", "lost"):
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
