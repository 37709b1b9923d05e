"""Download one file over HTTP: shows progress, resumes where it broke off, tries again when the connection breaks."""

import time
from pathlib import Path

import requests
from tqdm import tqdm
from urllib3.exceptions import MaxRetryError

CHUNK = 1 << 14  # bytes; less than this is lost when a transfer breaks off


class TransferError(Exception):
    """A file cannot be downloaded; the message says why, as part of a sentence."""


class _BrokenError(Exception):
    """The transfer broke in a way that another try may mend."""


def fetch(url: str, target: Path, *, attempts: int = 4, backoff: float = 0.5, timeout: tuple[float, float] = (3.0, 30.0)) -> None:
    """Download ``url`` to ``target``.

    What has arrived is kept in ``target`` with the suffix ``.part`` and is not asked for again, neither in the next attempt
    nor in the next call.  A broken transfer is tried ``attempts`` times, with a pause of ``backoff`` seconds that doubles each
    time.  A server that cannot be reached at all is given up at once, so that a machine without a network loses no time.

    Args:
        timeout: seconds to wait for a connection and for the next bytes.

    Raises:
        TransferError: if the server cannot be reached, refuses, or breaks off again and again.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    for attempt in range(attempts):
        try:
            _attempt(url, part, timeout)
            part.replace(target)
            return
        except (_BrokenError, requests.RequestException) as error:
            if isinstance(error, requests.ConnectionError) and error.args and isinstance(error.args[0], MaxRetryError):
                raise TransferError(f"the server cannot be reached ({type(error.args[0].reason).__name__})") from None
            reason = str(error)
        if attempt < attempts - 1:
            time.sleep(backoff * 2**attempt)
    raise TransferError(f"{target.name} broke off {attempts} times ({reason})")


def _attempt(url: str, part: Path, timeout: tuple[float, float]) -> None:
    """Append to ``part`` what is missing of ``url``."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink(missing_ok=True)  # it is not a beginning of this file
            raise _BrokenError("the server has fewer bytes than were downloaded before")
        if response.status_code == requests.codes.too_many_requests or response.status_code >= 500:
            raise _BrokenError(f"the server answered {response.status_code}")
        if response.status_code not in (requests.codes.ok, requests.codes.partial_content):
            raise TransferError(f"the server answered {response.status_code} to {part.stem}")
        resumed = response.status_code == requests.codes.partial_content
        if not resumed:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        bar = tqdm(desc=part.stem, total=total, initial=have, unit="B", unit_scale=True, disable=None, leave=False)
        with part.open("ab" if resumed else "wb") as stream, bar:
            for chunk in response.iter_content(CHUNK):
                stream.write(chunk)
                bar.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise _BrokenError(f"{part.stat().st_size} of {total} bytes arrived")
