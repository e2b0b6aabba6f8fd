//! Writes PNG files. The pixels are stored without compression, so that the bytes do not depend on a compressor's version. A frame
//! takes about one kilobyte.

use super::canvas::{Canvas, SIZE};

/// The file of an image with these frames from top to bottom.
pub fn encode(frames: &[Canvas]) -> Vec<u8> {
    let mut lines = Vec::new();
    for line in frames.iter().flat_map(Canvas::lines) {
        lines.push(0); // no filter
        lines.extend(line.iter().flatten());
    }
    let (width, height) = (SIZE as u32, (SIZE * frames.len()) as u32);
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 6, 0, 0, 0]); // 8 bits per channel, RGBA, not interlaced
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"sRGB", vec![0]), (b"IDAT", stored(&lines)), (b"IEND", Vec::new())] {
        let chunk = [&kind[..], &data].concat();
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(&chunk);
        file.extend(crc32(&chunk).to_be_bytes());
    }
    file
}

/// A zlib stream of stored blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks = data.chunks(usize::from(u16::MAX));
    let last = blocks.len() - 1;
    for (index, block) in blocks.enumerate() {
        let length = block.len() as u16;
        stream.push(u8::from(index == last));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn crc32(data: &[u8]) -> u32 {
    let shifted = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shifted))
}

fn adler32(data: &[u8]) -> u32 {
    let (low, high) = data.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the two algorithms' descriptions.
    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn data_longer_than_a_block_has_several() {
        let stream = stored(&[7; 70_000]);
        assert_eq!(stream.len(), 2 + 2 * 5 + 70_000 + 4);
        assert_eq!((stream[2], stream[2 + 5 + 65_535]), (0, 1));
    }

    #[test]
    fn the_header_has_the_height_of_all_frames() {
        let file = encode(&vec![Canvas::filled(0x123456); 3]);
        assert_eq!(file[16..24], [0, 0, 0, 16, 0, 0, 0, 48]);
    }
}
