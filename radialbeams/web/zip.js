// A zip of files, stored without compression: images are compressed already.

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
const UTF8 = 1 << 11; // names are in UTF-8
const DATE = (1 << 5) | 1; // 1 January 1980: the same files give the same archive

// entries: [{name, data: Uint8Array}]
export function zipOf(entries) {
  const pieces = [];
  const directory = [];
  let offset = 0;
  for (const { name, data } of entries) {
    const label = new TextEncoder().encode(name);
    const sum = crc32(data);
    const head = [[UTF8, 2], [0, 2], [0, 2], [DATE, 2], [sum, 4], [data.length, 4],
      [data.length, 4], [label.length, 2], [0, 2]];
    const local = bytes([[0x04034b50, 4], [20, 2], ...head]);
    pieces.push(local, label, data);
    directory.push(
      bytes([[0x02014b50, 4], [20, 2], [20, 2], ...head, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]),
      label,
    );
    offset += local.length + label.length + data.length;
  }
  const size = directory.reduce((total, piece) => total + piece.length, 0);
  const end = bytes([[0x06054b50, 4], [0, 2], [0, 2], [entries.length, 2], [entries.length, 2],
    [size, 4], [offset, 4], [0, 2]]);
  return new Blob([...pieces, ...directory, end], { type: "application/zip" });
}

// Little-endian numbers, each with its width.
function bytes(fields) {
  const out = [];
  for (const [value, width] of fields) {
    for (let n = 0; n < width; n++) out.push((value >>> (8 * n)) & 255);
  }
  return Uint8Array.from(out);
}

function crc32(data) {
  let value = 0xffffffff;
  for (const byte of data) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
