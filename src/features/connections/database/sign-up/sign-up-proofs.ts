// Decides which addresses of a sign-up codes must prove before the account is created.
import type { Connection } from '../../../../records/collections.ts';
import { attributesOf } from '../../../../records/connections/database-attributes.ts';
import {
  type CodeKind,
  codeKinds,
  customDatabase,
  databaseOptions,
  passwordUse,
} from '../../../../records/database-options.ts';
import type { SignUpRefusal, TypedAddresses } from '../../../../users/signup.ts';

/** Returns the kinds of the typed addresses that codes must prove. */
export function kindsToProve(connection: Connection, typed: TypedAddresses): CodeKind[] {
  if (customDatabase(connection) !== undefined) return [];
  const attributes = attributesOf(databaseOptions(connection));
  // Users without a password log in by codes, so the address that receives them must be proved.
  const codes = passwordUse(connection).signsUp ? [] : codeKinds(connection);
  return (['email', 'phone_number'] as const).filter(
    (kind) => typed[kind] !== undefined && (attributes[kind].verification === 'code' || codes.includes(kind)),
  );
}

/** Returns the refusal of a sign-up without a password if none of its addresses can receive codes. */
export function unprovableRefusal(
  connection: Connection,
  toProve: readonly CodeKind[],
): SignUpRefusal | undefined {
  const [kind = 'email'] = codeKinds(connection);
  return toProve.length === 0 ? { reason: 'missing-address', kind } : undefined;
}
