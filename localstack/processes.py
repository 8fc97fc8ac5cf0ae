"""LocalStack on a host without a container engine: its own runtime, with two parts put in place.

Lambda functions run as processes of this host. LocalStack starts a container for each execution environment; here it starts
`bootstrap` out of the function's archive and answers its Runtime API. What AWS does to a function holds here too: one event at
a time, the process stays for the next event, a function past its timeout is ended, one that died is started again. What does
not: the function sees this host's files and network, its memory has no bound, and START, END and REPORT lines are not logged.

DynamoDB Local is the one that localstack/dynamodb installs; LocalStack would fetch its own, with a Java of its own.
"""

import http.server
import json
import os
import queue
import subprocess
import tempfile
import threading
import time

from localstack.runtime import main as localstack
from localstack.services.dynamodb import packages, server
from localstack.services.lambda_.invocation import runtime_executor
from localstack.services.lambda_.invocation.lambda_models import InvocationResult

STARTUP = 10  # seconds that AWS gives a function until it asks for its first event


class Process(runtime_executor.RuntimeExecutor):
    """One execution environment: a process, and the Runtime API that it asks for events."""

    def __init__(self, id, function_version):
        super().__init__(id, function_version)
        self.root = str(function_version.config.code.get_unzipped_code_location())
        self.process, self.log, self.logged = None, tempfile.TemporaryFile(), 0
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Api", (RuntimeAPI,), {"owner": self}))
        threading.Thread(target=self.api.serve_forever, daemon=True).start()

    def start(self, env_vars):
        self.function_version.config.code.prepare_for_execution()
        self.env = {name: str(value) for name, value in env_vars.items() if value is not None} | {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.api.server_port}",
            "LAMBDA_TASK_ROOT": self.root,
            "PATH": os.environ["PATH"],
        }
        self.begin()

    def begin(self):
        """Starts the process and waits until it asks for an event."""
        self.events, self.answers, self.asked = queue.Queue(), queue.Queue(), threading.Event()
        bootstrap = os.path.join(self.root, "bootstrap")
        self.process = subprocess.Popen(
            [bootstrap], cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        deadline = time.monotonic() + STARTUP
        while not self.asked.wait(0.01):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise runtime_executor.LambdaRuntimeException(f"{bootstrap} asked for no event: {self.get_logs()}")

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.events.put(None)  # for its request for an event, which nobody reads any more

    def stop(self):
        self.end()
        self.api.shutdown()
        self.api.server_close()

    def invoke(self, payload):
        """One event in, one answer out. payload: invoke-id, invoked-function-arn, payload, trace-id."""
        request, seconds = payload["invoke-id"], self.function_version.config.timeout
        if self.process is None or self.process.poll() is not None:
            self.end()
            self.begin()
        self.events.put((payload, int((time.time() + seconds) * 1000)))
        deadline = time.monotonic() + seconds
        while True:
            try:
                body, failed = self.answers.get(timeout=0.05)
                break
            except queue.Empty:
                if self.process.poll() is not None:
                    kind, message = "Runtime.ExitError", f"Runtime exited with error: exit status {self.process.returncode}"
                elif time.monotonic() > deadline:
                    kind, message = "Sandbox.Timedout", f"Task timed out after {seconds}.00 seconds"
                else:
                    continue
            self.end()
            body, failed = json.dumps({"errorType": kind, "errorMessage": f"RequestId: {request} Error: {message}"}).encode(), True
            break
        return InvocationResult(request, body, is_error=failed, logs=self.get_logs())

    def get_logs(self):
        """What the function wrote since the last look: before it answers, it has written what it says about the event."""
        text = os.pread(self.log.fileno(), 4 << 20, self.logged)
        self.logged += len(text)
        return text.decode(errors="replace")

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return f"http://127.0.0.1:{self.api.server_port}"

    @classmethod
    def prepare_version(cls, function_version):
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        pass


class RuntimeAPI(http.server.BaseHTTPRequestHandler):
    """What a function asks of Lambda, as in AWS's "Using the Lambda runtime API for custom runtimes"."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: Process

    def do_GET(self):
        if not self.path.endswith("/runtime/invocation/next"):
            return self.answer(404)
        events = self.owner.events
        self.owner.asked.set()
        event = events.get()
        if event is None:
            self.close_connection = True
            return
        payload, deadline = event
        self.answer(
            200,
            payload["payload"].encode(),
            {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": payload["invoke-id"],
                "Lambda-Runtime-Deadline-Ms": str(deadline),
                "Lambda-Runtime-Invoked-Function-Arn": payload["invoked-function-arn"],
                "Lambda-Runtime-Trace-Id": payload["trace-id"],
            },
        )

    def do_POST(self):
        body = self.body()
        if self.path.endswith(("/response", "/error")) and "/invocation/" in self.path:
            self.owner.answers.put((body, self.path.endswith("/error")))
        self.answer(202)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(parts)

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def dynamodb_command(self):
    """The command of DynamoDB Local, out of the folder that localstack/dynamodb filled."""
    jars = os.environ["BELFRY_DYNAMODB_JARS"]
    return [
        *("java", "-Xmx512m", f"-Djava.library.path={jars}", "-cp", f"{jars}/*"),
        *("software.amazon.dynamodb.services.local.main.ServerRunner", "-disableTelemetry", "-inMemory"),
        *("-port", str(self.port)),
    ]


if __name__ == "__main__":
    # Before LocalStack loads its services: they take these by name.
    runtime_executor.get_runtime_executor = lambda: Process
    server.DynamodbServer._create_shell_command = dynamodb_command
    packages.DynamoDBLocalPackageInstaller.install = lambda *_, **__: None
    packages.DynamoDBLocalPackageInstaller.get_java_env_vars = lambda _: {"PATH": os.environ["PATH"]}
    localstack.main()
