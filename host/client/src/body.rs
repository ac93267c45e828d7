//! The body of a response, whose end frees a stream.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tower::BoxError;

use crate::pool::Place;

/// The body of a response. Dropping it ends the stream on the server, and frees the stream's place.
pub(crate) struct ResponseBody {
    incoming: Incoming,
    /// `None` over HTTP/1.1.
    _place: Option<Place>,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, place: Option<Place>) -> Self {
        Self { incoming, _place: place }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.incoming).poll_frame(context).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
