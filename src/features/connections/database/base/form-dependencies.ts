// The dependencies of the password pages.

import type { LimitLogin } from '../../../../capabilities/protection/attempts.ts';
import type { RateLimits } from '../../../../capabilities/protection/rate-limit.ts';
import type { Connection } from '../../../../records/collections.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { ShowNext } from '../../../flow/flow-routes.ts';
import type { HostedDependencies } from '../../../flow/request-page.ts';
import type { OfferDependencies } from '../../passkeys/enrollment.ts';
import type { FormStrategy, ProofDependencies } from '../../strategy.ts';
import type { VerificationDependencies } from './verification-link.ts';

/** What the login form needs; it offers passkeys beside the password. */
export interface PasswordFormDependencies extends HostedDependencies, OfferDependencies {
  config: Config;
}

export interface PasswordPagesDependencies
  extends ProofDependencies,
    PasswordFormDependencies,
    VerificationDependencies {
  limitLogin: LimitLogin;
  rateLimits: RateLimits;
  random: Random;
  showNext: ShowNext;
}

export interface FormConnection {
  connection: Connection;
  strategy: FormStrategy;
}
