//! Messages that can be sent to another server of a shared world, in their serialized form.

use crate::bytes;
use crate::simulation::letters::letter::Parcel;
use crate::simulation::letters::letter::RegionMessage;
use bevy::prelude::*;
use bevy::reflect::TypePath;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::{Any, TypeId};
use std::sync::Arc;

/// A message that also reaches regions on other servers once `register_shared_message` has been called for its type.
pub trait SharedMessage: RegionMessage + TypePath + Serialize + DeserializeOwned {}
impl<M: RegionMessage + TypePath + Serialize + DeserializeOwned> SharedMessage for M {}

/// The types of messages that can be sent to other servers.
#[derive(Clone, Debug, Default)]
pub struct SharedMessages(Vec<Functions>);

/// Type-erased functions of one type.
#[derive(Clone, Copy, Debug)]
struct Functions {
    type_id: TypeId,
    kind: &'static str,
    encode: fn(&dyn Any) -> Option<Vec<u8>>,
    decode: fn(&[u8]) -> Result<Arc<dyn Parcel>, String>,
}

impl SharedMessages {
    pub fn register<M: SharedMessage>(&mut self) {
        if self.0.iter().any(|known| known.type_id == TypeId::of::<M>()) {
            return;
        }
        self.0.push(Functions {
            type_id: TypeId::of::<M>(),
            kind: M::type_path(),
            encode: |message| match postcard::to_allocvec(message.downcast_ref::<M>()?) {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    error!("{} cannot be serialized: {error}", M::type_path());
                    None
                }
            },
            decode: |bytes| Ok(Arc::new(bytes::value::<M>(bytes)?)),
        });
    }

    /// The type path and the serialized form of a message, if its type is registered.
    pub(in crate::simulation) fn encode(&self, message: &dyn Parcel) -> Option<(String, Vec<u8>)> {
        let message = message.as_any();
        let known = self.0.iter().find(|known| known.type_id == message.type_id())?;
        Some((known.kind.to_owned(), (known.encode)(message)?))
    }

    /// The message with this type path.
    pub(in crate::simulation) fn decode(&self, kind: &str, bytes: &[u8]) -> Result<Arc<dyn Parcel>, String> {
        let known = self.0.iter().find(|known| known.kind == kind);
        let known = known.ok_or_else(|| format!("{kind} is not registered: call register_shared_message for it"))?;
        (known.decode)(bytes).map_err(|error| format!("{kind}: {error}"))
    }
}
