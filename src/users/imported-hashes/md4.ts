// MD4 (RFC 1320): Node.js has it no more, and hashes of old directories are made with it. Only to verify those.

const SHIFTS = [
  [3, 7, 11, 19],
  [3, 5, 9, 13],
  [3, 9, 11, 15],
] as const;
const ORDERS = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
  [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15],
] as const;
const CONSTANTS = [0, 0x5a827999, 0x6ed9eba1] as const;
const MIX = [
  (x: number, y: number, z: number) => (x & y) | (~x & z),
  (x: number, y: number, z: number) => (x & y) | (x & z) | (y & z),
  (x: number, y: number, z: number) => x ^ y ^ z,
] as const;

/** The MD4 digest of some bytes. */
export function md4(data: Uint8Array): Buffer {
  const padded = pad(data);
  let state: State = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
  for (let at = 0; at < padded.length; at += 64) state = compress(state, padded.subarray(at, at + 64));
  const digest = Buffer.alloc(16);
  state.forEach((word, index) => {
    digest.writeUInt32LE(word >>> 0, index * 4);
  });
  return digest;
}

type State = [number, number, number, number];

/** One bit, zeros, and the length in bits, to whole blocks of 64 bytes (§3.1, §3.2). */
function pad(data: Uint8Array): Buffer {
  const padded = Buffer.alloc(Math.ceil((data.length + 9) / 64) * 64);
  padded.set(data);
  padded[data.length] = 0x80;
  padded.writeBigUInt64LE(BigInt(data.length) * 8n, padded.length - 8);
  return padded;
}

function compress(before: State, block: Buffer): State {
  let [a, b, c, d] = before;
  for (const round of [0, 1, 2] as const) {
    for (const [step, word] of ORDERS[round].entries()) {
      const sum = (a + MIX[round](b, c, d) + block.readUInt32LE(word * 4) + CONSTANTS[round]) | 0;
      const shift = SHIFTS[round][(step % 4) as 0 | 1 | 2 | 3];
      [a, d, c, b] = [d, c, b, (sum << shift) | (sum >>> (32 - shift))];
    }
  }
  return [(before[0] + a) | 0, (before[1] + b) | 0, (before[2] + c) | 0, (before[3] + d) | 0];
}
