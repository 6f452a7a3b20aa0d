// The hosted service's export of password hashes, which its support provides: one user per line.
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
 * Converts such a line to the format of import files. The id is `alt_id` if there is one. Members that do not apply here
 * (tenant, connection, dates) are left out.
 * @returns undefined if the value is not such a line.
 */
export function fromHashExport(value: unknown): Record<string, unknown> | undefined {
  const read = exported.safeParse(value);
  if (!read.success) return undefined;
  const { _id, alt_id, email, email_verified, username, passwordHash, identifiers } = read.data;
  const by = (type: string) => identifiers?.find((one) => one.type === type);
  const phone = by('phone') ?? by('phone_number');
  return withoutEmpty({
    user_id: alt_id ?? _id.$oid,
    email: email ?? by('email')?.value,
    email_verified: email_verified ?? by('email')?.verified,
    username: username ?? by('username')?.value,
    phone_number: phone?.value,
    phone_verified: phone?.verified,
    password_hash: passwordHash,
  });
}

function withoutEmpty(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== null),
  );
}
