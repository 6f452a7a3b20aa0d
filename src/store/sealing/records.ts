// Converts a collection's records between memory, where secrets are plain text, and storage, where they are sealed.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto';
import {
  type AnyRecord,
  type AnySpec,
  decodeRecord,
  type Encoded,
  isObject,
  parseRecord,
} from '../record.ts';

export interface RecordSeal {
  /** Returns the JSON text to store for a record. */
  seal(record: Encoded): string;
  /** @throws SealFault when one of its members cannot be opened, or should be sealed and is not. */
  open(text: string): AnyRecord;
}

export function recordSeal(key: KeyObject, collection: string, { sealed: members }: AnySpec): RecordSeal {
  if (members === undefined) return { seal: ({ json }) => json, open: parseRecord };
  return {
    seal({ record, json }) {
      const sealed = mapMembers(record, members, (value, member) =>
        sealValue(key, { collection, id: record.id, member }, value),
      );
      return sealed === record ? json : JSON.stringify(sealed);
    },
    open(text) {
      const record = parseRecord(text);
      const opened = mapMembers(record, members, (value, member) => {
        if (isSealed(value)) return openValue(key, { collection, id: record.id, member }, value);
        throw new SealFault(`${member.join('.')} of "${record.id}" in ${collection} is not sealed`);
      });
      return opened === record ? record : decodeRecord(opened);
    },
  };
}

/** Seals the members of a stored record that are not sealed yet; returns its text. */
export function sealRest(
  key: KeyObject,
  collection: string,
  members: readonly string[],
  text: string,
): string {
  const record = parseRecord(text);
  const sealed = mapMembers({ ...record }, members, (value, member) =>
    isSealed(value) ? value : sealValue(key, { collection, id: record.id, member }, value),
  );
  return JSON.stringify(sealed);
}

export function opensWith(
  key: KeyObject | undefined,
  collection: string,
  members: readonly string[],
  text: string,
): { any: boolean; all: boolean } {
  const record = parseRecord(text);
  let any = false;
  let all = true;
  mapMembers({ ...record }, members, (value, member) => {
    if (!isSealed(value)) return value;
    any = true;
    try {
      if (key === undefined) all = false;
      else openValue(key, { collection, id: record.id, member }, value);
    } catch {
      all = false;
    }
    return value;
  });
  return { any, all };
}

// Finds, seals and opens the members of a record that records/collections.ts declares as sealed. The collection, the
// record's id and the member's path are authenticated with each value, so that someone who can write to the disk cannot
// move a value to another record or member.

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface Place {
  collection: string;
  id: string;
  /** The path of the member: names and array positions. */
  member: readonly string[];
}

/** A value as it is stored: `sealed` is nonce, tag and ciphertext in base64url. */
interface Sealed {
  sealed: string;
}

/** A sealed value that cannot be opened. */
export class SealFault extends Error {}

export function isSealed(value: unknown): value is Sealed {
  return isObject(value) && typeof value.sealed === 'string' && Object.keys(value).length === 1;
}

/** Encrypts a JSON value for its place (AES-256-GCM). */
export function sealValue(key: KeyObject, place: Place, value: unknown): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associatedData(place));
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url') };
}

/**
 * Decrypts what {@link sealValue} returned.
 * @throws SealFault naming the place when the value was sealed with another key or for another place, or was changed.
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

/** Decrypts an AES-256-GCM value in base64url. @throws Error when the key or the associated data is wrong. */
function decrypt(key: KeyObject, data: Buffer, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(data);
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}

/**
 * Returns a copy of a record with some members changed; the record itself if it has none of them.
 * @param members dotted paths; `*` stands for every member of an object or element of an array
 * @param change gets a value and its path; if it returns undefined the member is left out
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
