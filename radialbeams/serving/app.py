"""The routes of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from radialbeams.serving import answers, openapi, options
from radialbeams.serving.bodies import Body, read_body
from radialbeams.serving.errors import Problem
from radialbeams.serving.guard import BYTES, FILES, SHARE, Guard
from radialbeams.serving.held import Held, Share
from radialbeams.serving.logs import Log
from radialbeams.serving.metrics import Metrics
from radialbeams.serving.models import described
from radialbeams.serving.options import FileTask, task_of
from radialbeams.serving.page import page_files, page_settings
from radialbeams.serving.pool import ServicePool
from radialbeams.serving.records import Result
from radialbeams.serving.settings import ServiceSettings


class Service:
    """The routes, and the state they share."""

    def __init__(self, settings: ServiceSettings, log: Log | None = None) -> None:
        self.settings = settings
        self.log = log or Log(requests=settings.log)
        self.metrics = Metrics()
        self.pool = ServicePool(settings, self.metrics, self.log)
        self.held = Held(settings.max_received)
        self.draining = False
        self._of_angle = options.of_angle(settings)
        self._of_upright = options.of_upright(settings)
        self._models = [described(name) for name in settings.offered]

    def app(self) -> Guard:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.pool.start()
            yield
            await self.pool.stop()

        inner = Starlette(
            routes=self._routes(),
            lifespan=lifespan,
            exception_handlers={
                Problem: _problem,
                HTTPException: _http_error,
                Exception: _internal,
            },
        )
        return Guard(inner, self)

    def _routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route("/v1/angle", self.angle, methods=["POST"]),
            Route("/v1/upright", self.upright, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.show_metrics),
            Route("/openapi.json", self.openapi),
        ]
        if not self.settings.page:
            return routes
        for name, content in page_files().items():
            path = "/" if name == "index.html" else f"/{name}"
            routes.append(Route(path, _answering(answers.file_of_the_page(name, content))))
        return [*routes, Route("/page.json", self.page_json)]

    # --- images ---

    async def angle(self, request: Request) -> Response:
        task = task_of(request.query_params.multi_items(), self._of_angle, self._default())
        body, share = await self._body(request)
        results = await self._work(task, body, share)
        if body.is_form:
            return answers.records(body.uploads, results, images=False)
        return answers.one(results[0])

    async def upright(self, request: Request) -> Response:
        task = task_of(
            request.query_params.multi_items(), self._of_upright, self._default(turns=True)
        )
        body, share = await self._body(request)
        output = task.output or ("image" if len(body.uploads) == 1 else "json")
        if output == "image" and len(body.uploads) > 1:
            raise Problem(
                "bad_option",
                f"Expected one file for output=image; got {len(body.uploads)}. Use output=json "
                "or output=zip.",
            )
        results = await self._work(task, body, share)
        if output == "image":
            return answers.image(results[0])
        # In a thread: packing many images would block other requests.
        if output == "zip":
            return await run_in_threadpool(answers.archive, body.uploads, results)
        return await run_in_threadpool(answers.records, body.uploads, results, images=True)

    def _default(self, *, turns: bool = False) -> FileTask:
        return FileTask(self.settings.default_model, turns=turns)

    async def _body(self, request: Request) -> tuple[Body, Share]:
        self.pool.backlog.check_room(1)  # before the body is received
        share = Share(self.held)
        request.scope[SHARE] = share  # the guard releases it when the response is sent
        body = await read_body(request, self.settings, share)
        request.scope[FILES], request.scope[BYTES] = len(body.uploads), share.size
        return body, share

    async def _work(self, task: FileTask, body: Body, share: Share) -> list[Result]:
        results = await self.pool.work(task, [upload.data for upload in body.uploads], share)
        for record, _ in results:
            error = record.get("error")
            self.metrics.file(error["code"] if error else record["action"])
        return results

    # --- about the service ---

    async def models(self, request: Request) -> Response:
        return answers.as_json({"default": self.settings.default_model, "models": self._models})

    async def healthz(self, request: Request) -> Response:
        return answers.as_json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        if self.draining:
            raise Problem("stopping", "The service is about to stop.")
        if not self.pool.ready:
            raise Problem("overloaded", self.pool.broken or "No worker is ready yet.")
        return answers.as_json({"status": "ready"})

    async def show_metrics(self, request: Request) -> Response:
        backlog = self.pool.backlog
        gauges = {
            "queue_files": ("Files waiting or being processed.", float(backlog.held)),
            "queue_waiting_files": ("Files waiting for a worker.", float(backlog.waiting)),
            "held_bytes": ("Bytes of requests and responses in memory.", float(self.held.now)),
            "workers_ready": ("Workers ready to take files.", float(self.pool.ready_workers)),
        }
        return PlainTextResponse(
            self.metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def openapi(self, request: Request) -> Response:
        return answers.as_json(openapi.document(self.settings, self._of_angle, self._of_upright))

    async def page_json(self, request: Request) -> Response:
        return answers.as_json(page_settings("service", self.settings))


def _answering(
    answer: Callable[[Request], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """The handler as a coroutine; Starlette would run a plain function in a thread."""

    async def call(request: Request) -> Response:
        return answer(request)

    return call


async def _problem(_: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise error
    return answers.problem(error)


async def _http_error(request: Request, error: Exception) -> Response:
    """The framework's own errors, in the format of all others."""
    if not isinstance(error, HTTPException):
        raise error
    path = request.url.path[:200]
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        wrong = Problem("wrong_method", f"{path} takes {allowed}; got {request.method[:20]}.")
        return answers.as_json(wrong.content, 405, dict(error.headers or {}))
    return answers.problem(Problem("not_found", f"There is nothing at {path}."))


async def _internal(_: Request, error: Exception) -> Response:
    return answers.problem(Problem("internal", "An internal error occurred. It was logged."))
