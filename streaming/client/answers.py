"""The coordinator's answer to a request, with its body typed."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from coordinator_logic.errors import Error
from coordinator_logic.messages import Message
from streaming.client.errors import coordinator_error, error_of

ResponseT = TypeVar("ResponseT", bound=Message)


@dataclass(frozen=True)
class Answer(Generic[ResponseT]):
    """The coordinator's answer to one request, which may be an error.

    error_code: Kafka's error code for the request as a whole; 0 for none.
    message: the coordinator's explanation of an error, or None.
    body: the response; None if the coordinator could not read the request.
    """

    api: str
    group_id: str
    error_code: int
    message: str | None
    body: ResponseT | None

    @property
    def error(self) -> Error:
        """The error of the request as a whole, as Kafka's error."""
        return error_of(self.error_code)

    def unwrap(self) -> ResponseT:
        """Return the body of a successful answer.

        Raises:
            CoordinatorError: the answer has an error code, or no body. Its ``body`` is the answer's.
        """
        request = f"{self.api} for group {self.group_id!r}"
        if self.error_code != Error.NONE:
            # The APIs of consumer groups explain an error in their body.
            reason = self.message or getattr(self.body, "error_message", None)
            failure = coordinator_error(self.error_code, f"{request}: {reason}" if reason else request)
            failure.body, failure.group_id, failure.reason = self.body, self.group_id, reason
            raise failure
        if self.body is None:
            raise coordinator_error(Error.UNKNOWN_SERVER_ERROR, f"{request}: the answer has no body")
        return self.body
