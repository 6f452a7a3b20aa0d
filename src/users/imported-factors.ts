// Second factors that users bring along from where they come from: by a file, or by the script of a database elsewhere.
import { z } from 'zod';
import type { AuthenticatorRecord } from '../records/authenticators.ts';
import { normalizeEmail } from '../records/email.ts';
import type { Frozen } from '../records/record.ts';
import { type FactorKind, SECOND_FACTORS } from '../records/second-factors.ts';
import type { Write } from '../store/contract.ts';
import type { UsersDependencies } from './user.ts';

/** A phone number as it is imported (E.164). */
export const importedPhone = z.string().regex(/^\+[0-9]{1,15}$/);

/** An e-mail address as it is imported. */
export const importedEmail = z
  .string()
  .max(320)
  .refine((value) => normalizeEmail(value) !== undefined, {
    params: { code: 'FORMAT', fault: 'format' },
    message: "Object didn't pass validation for format email",
  });

const factor = z.union([
  z.strictObject({ totp: z.strictObject({ secret: z.string().regex(/^[A-Z2-7]{16,256}$/) }) }),
  z.strictObject({ phone: z.strictObject({ value: importedPhone }) }),
  z.strictObject({ email: z.strictObject({ value: importedEmail }) }),
]);

/** A second factor that a user brings. */
export type ImportedFactor = z.output<typeof factor>;

/** Those of one user, as `mfa_factors` says them. */
export const importedFactors = z.array(factor).max(10);

/** The writes that give a user second factors; they were confirmed where they come from. */
export function factorWrites(
  { clock, random }: Pick<UsersDependencies, 'clock' | 'random'>,
  userId: string,
  factors: readonly ImportedFactor[],
): Write[] {
  const created_at = new Date(clock()).toISOString();
  return factors.map((one) => {
    const { kind, ...fields } = ownOf(one);
    const id = `${SECOND_FACTORS[kind].prefix}|dev_${random(12).toString('hex')}`;
    const record: AuthenticatorRecord = { id, user_id: userId, kind, active: true, created_at, ...fields };
    return { collection: 'authenticators', insert: record };
  });
}

/** What is kept of one. */
function ownOf(factor: ImportedFactor): { kind: FactorKind } & Partial<AuthenticatorRecord> {
  if ('totp' in factor) return { kind: 'otp', secret: factor.totp.secret };
  if ('phone' in factor) return { kind: 'sms', phone_number: factor.phone.value };
  return { kind: 'email', email: factor.email.value };
}

/**
 * A second factor as it is exported: what {@link factorWrites} takes.
 * @returns undefined for one that stays behind, as devices do: their keys are for this server alone.
 */
export function exportedFactor({
  kind,
  secret,
  phone_number,
  email,
}: Frozen<AuthenticatorRecord>): ImportedFactor | undefined {
  if (kind === 'otp' && secret !== undefined) return { totp: { secret } };
  if (kind === 'sms' && phone_number !== undefined) return { phone: { value: phone_number } };
  return kind === 'email' && email !== undefined ? { email: { value: email } } : undefined;
}
