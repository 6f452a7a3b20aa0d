// The hosted service's own export of password hashes, one user a line, as its support hands it out.
import { z } from 'zod';

const identifier = z.looseObject({ type: z.string(), value: z.string(), verified: z.boolean().optional() });

const exported = z.looseObject({
  _id: z.looseObject({ $oid: z.string() }),
  alt_id: z.string().optional(),
  email: z.string().nullish(),
  email_verified: z.boolean().nullish(),
  username: z.string().nullish(),
  passwordHash: z.string().nullish(),
  identifiers: z.array(identifier).nullish(),
});

/**
 * The form of import files of such a line. Who has an `alt_id` is known by that; members that say nothing of the user
 * here (tenant, connection, dates) are left out.
 * @returns undefined for what is no such line.
 */
export function fromHashExport(value: unknown): Record<string, unknown> | undefined {
  const read = exported.safeParse(value);
  if (!read.success) return undefined;
  const { _id, alt_id, email, email_verified, username, passwordHash, identifiers } = read.data;
  const by = (type: string) => identifiers?.find((one) => one.type === type);
  const phone = by('phone') ?? by('phone_number');
  return withoutNothing({
    user_id: alt_id ?? _id.$oid,
    email: email ?? by('email')?.value,
    email_verified: email_verified ?? by('email')?.verified,
    username: username ?? by('username')?.value,
    phone_number: phone?.value,
    phone_verified: phone?.verified,
    password_hash: passwordHash,
  });
}

function withoutNothing(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null),
  );
}
