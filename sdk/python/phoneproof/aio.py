"""The same client for asyncio: each call runs in a thread, and cancelling it closes its socket."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from phoneproof.client import PhoneProof
from phoneproof.session import SessionProof, SessionStore
from phoneproof.transport import Cancellation, Request, Response

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Binding(Protocol[T_co]):
    def _bind(self, cancellation: Cancellation) -> T_co: ...


async def _run(cancellation: Cancellation, function: Callable[[], R]) -> R:
    """Returns what a function returns in a thread of its own, unless the task is cancelled."""
    result: concurrent.futures.Future[R] = concurrent.futures.Future()
    result.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result.set_result(context.run(function))
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=run, name="phoneproof", daemon=True).start()
    try:
        return await asyncio.wrap_future(result)
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


def _in_thread(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[_Binding[T], P], Coroutine[Any, Any, R]]:
    """Returns a method as a coroutine function."""

    @functools.wraps(method)
    async def call(self: _Binding[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        cancellation = Cancellation()
        return await _run(cancellation, functools.partial(method, self._bind(cancellation), *args, **kwargs))

    return call


def _in_threads(method: Callable[Concatenate[T, P], Iterator[R]]) -> Callable[Concatenate[_Binding[T], P], AsyncIterator[R]]:
    """Returns a generator as an asynchronous one."""

    @functools.wraps(method)
    async def iterate(self: _Binding[T], /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[R]:
        cancellation = Cancellation()
        items = method(self._bind(cancellation), *args, **kwargs)
        while (item := await _run(cancellation, lambda: next(items, None))) is not None:
            yield item

    return iterate


class AsyncPhoneProof:
    """PhoneProof with coroutines."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 10.0,
        transport: Callable[[Request], Response] | None = None,
    ) -> None:
        """The parameters are those of PhoneProof. The transport is called in threads."""
        self._client = PhoneProof(base_url, api_key, timeout=timeout, transport=transport)

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    def _bind(self, cancellation: Cancellation) -> PhoneProof:
        return self._client._bind(cancellation)

    start = _in_thread(PhoneProof.start)
    deliver = _in_thread(PhoneProof.deliver)
    status = _in_thread(PhoneProof.status)
    wait = _in_thread(PhoneProof.wait)
    confirm = _in_thread(PhoneProof.confirm)
    cancel = _in_thread(PhoneProof.cancel)
    redeliver = _in_thread(PhoneProof.redeliver)
    get = _in_thread(PhoneProof.get)
    openapi = _in_thread(PhoneProof.openapi)
    list = _in_threads(PhoneProof.list)
    find = _in_threads(PhoneProof.find)


class AsyncSessionProof:
    """SessionProof with coroutines. The methods of the store are plain ones, and called in threads."""

    def __init__(self, client: AsyncPhoneProof, store: SessionStore, *, accept: Collection[str] = ()) -> None:
        """The parameters are those of SessionProof."""
        self._client = client
        self._store = store
        self._accept = accept

    def _bind(self, cancellation: Cancellation) -> SessionProof:
        return SessionProof(self._client._bind(cancellation), self._store, accept=self._accept)

    begin = _in_thread(SessionProof.begin)
    redeem = _in_thread(SessionProof.redeem)
    verified = _in_thread(SessionProof.verified)
