"""Calls a server with the client that openapi-python-client made of its document. ADDRESS and TOKEN are in the environment."""

import os
import time
from http import HTTPStatus

from belfry_client import AuthenticatedClient
from belfry_client.api.jobs import get_job, list_jobs, put_job
from belfry_client.api.runs import get_run, list_runs, trigger_job
from belfry_client.models import (
    CronSchedule,
    ExecCall,
    ExecTarget,
    HandlerCall,
    HandlerTarget,
    Job,
    JobLabels,
    JobPage,
    Overlap,
    OverlapPolicy,
    Problem,
    Run,
    RunPage,
    RunState,
    Trigger,
)
from belfry_client.types import UNSET, Unset

api = AuthenticatedClient(os.environ["ADDRESS"], os.environ["TOKEN"], raise_on_unexpected_status=True)


def job() -> Job:
    labels = JobLabels()
    labels["from"] = "python"
    return Job(
        schedule=CronSchedule(cron="30 9 * * 1-5", timezone="Europe/Berlin"),
        target=ExecCall(exec_=ExecTarget(argv=["/bin/sh", "-c", "echo done"])),
        overlap=Overlap(policy=OverlapPolicy.QUEUE, limit=2),
        labels=labels,
    )


NAMES = ["py-a", "py-b", "py-c"]
for name in NAMES:
    put = put_job.sync_detailed(name, client=api, body=job())
    assert put.status_code == HTTPStatus.CREATED, put
    assert isinstance(put.parsed, Job) and put.parsed.name == name, put

stored = get_job.sync_detailed("py-a", client=api)
assert isinstance(stored.parsed, Job), stored
assert isinstance(stored.parsed.target, ExecCall) and len(stored.parsed.target.exec_.argv) == 3, stored.parsed.target
assert isinstance(stored.parsed.schedule, CronSchedule) and stored.parsed.schedule.timezone == "Europe/Berlin", stored.parsed.schedule
assert isinstance(stored.parsed.overlap, Overlap) and stored.parsed.overlap.limit == 2, stored.parsed.overlap
again = put_job.sync_detailed("py-a", client=api, body=stored.parsed)
assert again.status_code == HTTPStatus.OK and again.parsed == stored.parsed, again

handler = put_job.sync_detailed("py-handler", client=api, body=Job(target=HandlerCall(handler=HandlerTarget(name="f"))), dry_run=True)
assert isinstance(handler.parsed, Problem) or isinstance(handler.parsed, Job) and isinstance(handler.parsed.target, HandlerCall), handler

listed: list[str | Unset] = []
cursor: str | Unset = UNSET
while True:
    page = list_jobs.sync(client=api, limit=2, label=["from=python"], cursor=cursor)
    assert isinstance(page, JobPage) and len(page.items) <= 2, page
    listed += [j.name for j in page.items]
    cursor = page.next_
    if isinstance(cursor, Unset):
        break
assert listed == NAMES, listed

asked = trigger_job.sync_detailed("py-a", client=api, body=Trigger(payload={"a": 1}))
assert asked.status_code == HTTPStatus.ACCEPTED and isinstance(asked.parsed, Run), asked
until = time.monotonic() + 300
while True:
    run = get_run.sync(asked.parsed.id, client=api)
    assert isinstance(run, Run) and time.monotonic() < until, run
    if run.state == RunState.SUCCEEDED:
        assert "done" in str(run.result), run
        break
    assert run.state in (RunState.SCHEDULED, RunState.QUEUED, RunState.RUNNING), run
    time.sleep(0.1)
runs = list_runs.sync(client=api, state=[RunState.SUCCEEDED, RunState.FAILED], job="py-a")
assert isinstance(runs, RunPage) and [r.id for r in runs.items] == [asked.parsed.id], runs

wrong = job()
wrong.name, wrong.timeout = "other", "25h"
refused = put_job.sync_detailed("py-a", client=api, body=wrong, dry_run=True)
assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY and isinstance(refused.parsed, Problem), refused
assert refused.parsed.code == "invalid" and not isinstance(refused.parsed.errors, Unset), refused
assert sorted(e.field for e in refused.parsed.errors) == ["name", "timeout"], refused

none = get_job.sync_detailed("none", client=api)
assert none.status_code == HTTPStatus.NOT_FOUND and isinstance(none.parsed, Problem) and none.parsed.code == "job_not_found", none
print("Python: jobs, pages, a run and refusals")
