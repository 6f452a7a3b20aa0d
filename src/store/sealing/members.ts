// Which members of a record are sealed is declared in records/collections.ts; here they are found, sealed and opened.
// The collection, the record's id and the member are authenticated with each value, so that none can be moved to
// another record or member by whoever writes to the disk.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto';
import { isObject } from '../record.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Where a value belongs. */
interface Place {
  collection: string;
  id: string;
  /** Names and positions from the record on. */
  member: readonly string[];
}

/** A value as it is stored: `sealed` is nonce, tag and ciphertext in base64url. */
interface Sealed {
  sealed: string;
}

/** A sealed value that cannot be opened. */
export class SealFault extends Error {}

/** Whether a value has the form of a sealed one. */
export function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.sealed === 'string' && Object.keys(value).length === 1;
}

/** Seals a JSON value for its place. */
export function sealValue(key: KeyObject, place: Place, value: unknown): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associatedData(place));
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url') };
}

/**
 * Opens what {@link sealValue} made.
 * @throws SealFault naming the place when it was sealed with another key or for another place, or was changed.
 */
export function openValue(key: KeyObject, place: Place, { sealed }: Sealed): unknown {
  try {
    return JSON.parse(decrypt(key, associatedData(place), sealed));
  } catch (cause) {
    const { collection, id, member } = place;
    throw new SealFault(
      `${member.join('.')} of "${id}" in ${collection} cannot be opened: it was sealed with another key or for another record, or is damaged`,
      { cause },
    );
  }
}

/** The text of an AES-256-GCM value in base64url. @throws Error when the key or the associated data is another. */
export function decrypt(key: KeyObject, data: Buffer, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(data);
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}

/**
 * A copy of a record with some of its members changed; the record itself where it has none of them.
 * @param members dotted paths; `*` is every member of an object or element of an array
 * @param change given a value and where it is; a member of which it makes undefined is left out
 */
export function mapMembers(
  record: Readonly<Record<string, unknown>>,
  members: readonly string[],
  change: (value: unknown, member: readonly string[]) => unknown,
): Record<string, unknown> {
  return members.reduce<Record<string, unknown>>((mapped, path) => {
    const next = mapAt(mapped, path.split('.'), [], change);
    return isObject(next) ? next : mapped;
  }, record);
}

function mapAt(
  value: unknown,
  path: readonly string[],
  at: readonly string[],
  change: (value: unknown, member: readonly string[]) => unknown,
): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value === null || value === undefined ? value : change(value, at);
  if (Array.isArray(value)) {
    return name === '*' ? value.map((one, n) => mapAt(one, rest, [...at, String(n)], change)) : value;
  }
  if (!isObject(value)) return value;
  const names = name === '*' ? Object.keys(value) : Object.hasOwn(value, name) ? [name] : [];
  if (names.length === 0) return value;
  const changed = names.map((one) => [one, mapAt(value[one], rest, [...at, one], change)]);
  return { ...value, ...Object.fromEntries(changed) };
}

const associatedData = ({ collection, id, member }: Place) =>
  Buffer.from(JSON.stringify([collection, id, ...member]));
