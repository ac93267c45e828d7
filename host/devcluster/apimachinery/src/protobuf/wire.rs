//! Numbers and lengths on the wire (<https://protobuf.dev/programming-guides/encoding/>).

use crate::protobuf::error::Fault;

/// A value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire<'a> {
    /// Type 0.
    Number(u64),
    /// Type 1.
    Fixed64(u64),
    /// Type 2.
    Bytes(&'a [u8]),
    /// Type 5, or a group (3 and 4), whose content is skipped: no field of Kubernetes has these.
    Other(u8),
}

impl Wire<'_> {
    /// The number of the wire type.
    pub(crate) fn wire_type(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Other(other) => *other,
        }
    }
}

/// Reads a message field by field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field's number and value; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let wire = match wire_type {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Fixed64(self.fixed64()?),
            2 => Wire::Bytes(self.bytes()?),
            5 => {
                self.take(4)?;
                Wire::Other(5)
            }
            3 => {
                self.skip_group()?;
                Wire::Other(3)
            }
            _ => return Err(Fault::IllegalTag(u64::from(number) << 3 | u64::from(wire_type))),
        };
        Ok(Some((number, wire)))
    }

    /// Whether nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn tag(&mut self) -> Result<(u32, u8), Fault> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Fault::IllegalTag(tag))?;
        let wire_type = u8::try_from(tag & 7).map_err(|_| Fault::IllegalTag(tag))?;
        if number == 0 { Err(Fault::IllegalTag(tag)) } else { Ok((number, wire_type)) }
    }

    /// Skips to the end of a group, counting instead of descending.
    fn skip_group(&mut self) -> Result<(), Fault> {
        let mut open = 1_usize;
        while open > 0 {
            match self.tag()?.1 {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => drop(self.bytes()?),
                3 => open += 1,
                4 => open -= 1,
                5 => drop(self.take(4)?),
                other => return Err(Fault::IllegalTag(u64::from(other))),
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::EndsEarly)?;
        self.0 = rest;
        Ok(taken)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.varint()?).map_err(|_| Fault::EndsEarly)?;
        self.take(length)
    }

    /// Eight bytes, the lowest first.
    pub(crate) fn fixed64(&mut self) -> Result<u64, Fault> {
        let bytes = self.take(8)?.try_into().map_err(|_| Fault::EndsEarly)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number in groups of seven bits, the lowest first.
    pub(crate) fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { return Err(Fault::EndsEarly) };
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::NumberTooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_type_are_read_and_skipped() {
        let bytes = [
            &[0x08, 0x96, 0x01][..],                                             // 1: 150
            &[0x12, 2, b'h', b'i'],                                              // 2: "hi"
            &[0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],                               // 3: 1.0
            &[0x25, 1, 2, 3, 4],                                                 // 4: four bytes
            &[0x2b, 0x08, 1, 0x33, 0x0a, 1, 7, 0x34, 0x2c],                      // 5: a group with a group
            &[0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], // 6: -1
        ]
        .concat();
        let mut reader = Reader::new(&bytes);
        let mut fields = Vec::new();
        while let Some(field) = reader.next().unwrap() {
            fields.push(field);
        }
        assert_eq!(
            fields,
            [
                (1, Wire::Number(150)),
                (2, Wire::Bytes(b"hi")),
                (3, Wire::Fixed64(1.0_f64.to_bits())),
                (4, Wire::Other(5)),
                (5, Wire::Other(3)),
                (6, Wire::Number(u64::MAX)),
            ]
        );
    }

    #[test]
    fn truncated_or_impossible_input_is_refused() {
        let cases: [(&[u8], Fault); 7] = [
            (&[0x08], Fault::EndsEarly),
            (&[0x12, 5, b'h'], Fault::EndsEarly),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], Fault::EndsEarly),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Fault::NumberTooLong),
            (&[0x00, 0x01], Fault::IllegalTag(0)),
            (&[0x0f], Fault::IllegalTag(15)),
            (&[0x2b, 0x08, 1], Fault::EndsEarly),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Reader::new(bytes).next().unwrap_err(), expected, "{bytes:?}");
        }
    }
}
