// Converts a collection's records between memory, where secrets are plain text, and storage, where they are sealed.
import type { KeyObject } from 'node:crypto';
import type { AnySpec } from '../keys.ts';
import { type AnyRecord, decodeRecord, type Encoded, parseRecord } from '../record.ts';
import { isSealed, mapMembers, openValue, SealFault, sealValue } from './members.ts';

/** Seals and opens the records of one collection. */
export interface RecordSeal {
  /** Returns the JSON text to store for a record. */
  seal(record: Encoded): string;
  /**
   * Returns the record of a stored text.
   * @throws SealFault when one of its members cannot be opened, or should be sealed and is not.
   */
  open(text: string): AnyRecord;
}

/** Returns the seal of a collection, as declared. */
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

/** Returns whether a record has any sealed member, and whether the key opens all of them. */
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
