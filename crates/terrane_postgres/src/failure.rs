//! Failed statements, and what they mean for another attempt.

use std::error::Error;
use std::path::Path;
use std::{fmt, io};
use terrane_storage::{Family, StoreError};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// SQLSTATE of `write_batch` for a failed precondition; the detail is its index, from 1.
pub(crate) const PRECONDITION_FAILED: &str = "TE001";

/// SQLSTATE of a session that begins while others have the world open.
pub(crate) const IN_USE: &str = "TE002";

const CERTIFICATE_HINT: &str =
    "; name a file with the right certificate with sslrootcert, or turn encryption off with sslmode=disable";
const SILENCE: &str = "the server did not answer in time";

/// A failed statement.
#[derive(Debug)]
pub(crate) struct Failure {
    pub kind: Kind,
    /// The message of the server or of the client library.
    pub reason: String,
}

/// The effect of a failed statement, which decides whether it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The connection broke, so the statement may have been executed, or may be executed later.
    Lost,
    /// The statement was not executed, but may be when sent again.
    Busy,
    /// The statement was not executed and would fail again.
    Refused,
    /// The server found that its data on disk is damaged.
    Damaged,
    /// The precondition with this index did not hold.
    Precondition(usize),
    /// Other sessions have the world open.
    InUse,
}

impl Failure {
    pub fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// The failure to connect.
    pub fn of_connecting(error: &tokio_postgres::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        let (kind, hint) = match (error.as_db_error(), cause) {
            (Some(answer), _) => (kind_of_answer(answer), ""),
            // rustls refuses a certificate with such an error.
            (None, Some(cause)) if cause.kind() == io::ErrorKind::InvalidData => (Kind::Refused, CERTIFICATE_HINT),
            (None, Some(_)) => (Kind::Busy, ""),
            (None, None) if error.is_closed() => (Kind::Busy, ""),
            (None, None) => (Kind::Refused, ""),
        };
        Self { kind, reason: message(error) + hint }
    }

    pub fn silence() -> Self {
        Self::new(Kind::Lost, SILENCE)
    }

    /// Replaces the reason by that of an earlier attempt if only the time was too short for this one.
    pub fn after(self, earlier: Option<Self>) -> Self {
        match earlier {
            Some(earlier) if self.reason == SILENCE => Self { kind: self.kind, ..earlier },
            _ => self,
        }
    }

    /// Returns `true` if the same statement may succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Busy)
    }

    /// Returns `true` if the statement has changed nothing and never will.
    pub fn is_definite(&self) -> bool {
        self.kind != Kind::Lost
    }

    pub fn into_error(self, operation: &'static str, family: Option<Family>, path: &Path) -> StoreError {
        let (path, reason) = (path.to_path_buf(), self.reason);
        match family {
            _ if self.kind == Kind::InUse => StoreError::InUse { path, reason },
            Some(family) if self.kind == Kind::Damaged => StoreError::Damaged { family, path, reason },
            _ => StoreError::Backend { operation, family, path, reason },
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    /// The failure of a statement on an open connection.
    fn from(error: tokio_postgres::Error) -> Self {
        let kind = match (error.as_db_error(), error.source()) {
            // A session that is ended while it waits for its standby has already committed.
            (Some(answer), _) if answer.parsed_severity() != Some(Severity::Error) => Kind::Lost,
            (Some(answer), _) => kind_of_answer(answer),
            // The client library could not convert a parameter or a result.
            (None, Some(cause)) if !cause.is::<io::Error>() => Kind::Refused,
            (None, _) => Kind::Lost,
        };
        Self { kind, reason: message(&error) }
    }
}

/// A message with its causes. The display of `tokio_postgres::Error` hides the server's message.
pub(crate) fn message(error: &tokio_postgres::Error) -> String {
    let Some(answer) = error.as_db_error() else {
        return match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
    };
    if answer.code().code() == IN_USE {
        return answer.message().to_owned();
    }
    let mut message = match *answer.code() {
        SqlState::PROGRAM_LIMIT_EXCEEDED => "a key is too long, or a value too large, for PostgreSQL: ".to_owned(),
        _ => String::new(),
    };
    message += answer.message();
    for more in [answer.detail(), answer.hint()].into_iter().flatten() {
        message += &format!("; {more}");
    }
    message + &format!(" (SQLSTATE {})", answer.code().code())
}

fn kind_of_answer(answer: &DbError) -> Kind {
    let code = answer.code();
    if code.code() == PRECONDITION_FAILED {
        let index = answer.detail().and_then(|index| index.parse::<usize>().ok());
        return index.and_then(|index| index.checked_sub(1)).map_or(Kind::Refused, Kind::Precondition);
    }
    if code.code() == IN_USE {
        return Kind::InUse;
    }
    let is_passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // A standby that may become the primary, or another host is the primary now.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_SESSION_TIMEOUT,
    ]
    .contains(code);
    // Broken connections (08), and a lack of connections, memory or disk space (53).
    let is_passing = is_passing || ["08", "53"].iter().any(|class| code.code().starts_with(class));
    let is_unknown =
        [SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN, SqlState::TRANSACTION_RESOLUTION_UNKNOWN].contains(code);
    if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        return Kind::Damaged;
    }
    match (is_unknown, is_passing) {
        (true, _) => Kind::Lost,
        (false, true) => Kind::Busy,
        (false, false) => Kind::Refused,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
