// Which addresses of a sign-up are proved by codes before there is an account.
import type { Connection } from '../../records/collections.ts';
import { attributesOf } from '../../records/database-attributes.ts';
import {
  type CodeKind,
  codeKinds,
  customDatabase,
  databaseOptions,
  passwordUse,
} from '../../records/database-options.ts';
import type { SignUpRefusal, TypedAddresses } from '../../users/signup.ts';

/** The addresses of a sign-up that are proved by codes before there is an account. */
export function provedByCode(connection: Connection, typed: TypedAddresses): CodeKind[] {
  if (customDatabase(connection) !== undefined) return [];
  const attributes = attributesOf(databaseOptions(connection));
  // Without a password it is what they log in with.
  const codes = passwordUse(connection).signsUp ? [] : codeKinds(connection);
  return (['email', 'phone_number'] as const).filter(
    (kind) => typed[kind] !== undefined && (attributes[kind].verification === 'code' || codes.includes(kind)),
  );
}

/** @returns a refusal where somebody signs up without a password, and without an address that codes are sent to. */
export function unprovable(connection: Connection, proved: readonly CodeKind[]): SignUpRefusal | undefined {
  const [kind = 'email'] = codeKinds(connection);
  return proved.length === 0 ? { reason: 'missing-address', kind } : undefined;
}
