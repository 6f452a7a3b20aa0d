// One-time passwords of authenticator apps (RFC 6238).
import { Secret, TOTP } from 'otpauth';

/** Seconds of a time step (RFC 6238 §4.1), and by how many steps a clock may differ. */
const STEP = 30;
const WINDOW = 1;

/**
 * Returns the time step of a right code: the present one, or one step before or after (RFC 6238 §5.2).
 * @param now epoch milliseconds.
 * @returns undefined for a wrong code.
 */
export function stepOf(secret: string, code: string, now: number): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: STEP });
  const delta = totp.validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? undefined : Math.floor(now / 1000 / STEP) + delta;
}

/** Returns the URI that an authenticator app scans (Key URI Format): issuer and account, SHA1, 6 digits, 30 s. */
export function otpauthUri(secret: string, issuer: string, account: string): string {
  return new TOTP({
    secret: Secret.fromBase32(secret),
    issuer,
    label: account,
    algorithm: 'SHA1',
    digits: 6,
    period: STEP,
  }).toString();
}
