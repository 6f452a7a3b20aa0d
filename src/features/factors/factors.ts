// All second factors, in the order in which `mfa_requirements` lists them.
import type { Factor } from './factor.ts';
import { email, sms } from './message/message-factor.ts';
import { otp } from './otp/otp.ts';
import { push } from './push/push.ts';
import { recoveryCode } from './recovery/recovery-code.ts';
import { platform, roaming } from './webauthn/webauthn.ts';

export const FACTORS: readonly Factor[] = [otp, sms, email, push, roaming, platform, recoveryCode];
