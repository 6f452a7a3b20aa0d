// Stubs for an engine without MFA, actions, other protocols and client certificates.

import type { Actions } from '../../src/capabilities/actions/actions.ts';
import type { RateLimits } from '../../src/capabilities/protection/rate-limit.ts';
import { clientCertificates } from '../../src/capabilities/tls/client-certificates.ts';
import type { SecondFactor } from '../../src/engine/admission/second-factor.ts';
import type { ServerLoginCallbacks } from '../../src/engine/client/server-login-callbacks.ts';
import { createOutbound, type Outbound, outboundRules } from '../../src/http/outbound/outbound.ts';

/** A second factor that is never required. */
export const NO_SECOND_FACTOR: { secondFactor: SecondFactor; acrValues: string[] } = {
  secondFactor: {
    isRequired: async () => false,
    isSufficient: async () => true,
    availabilityOf: async () => 'unavailable',
    challenge: async () => '/',
    isRemembered: async () => false,
    includesFactor: () => false,
    enrolledFactors: async () => [],
    factorsOf: async () => '',
    tokenClaims: async () => ({}),
    refusal: async () => {
      throw new Error('no second factor is demanded');
    },
    error: 'none',
    description: 'none',
  },
  acrValues: [],
};

/** Without external logins and actions. */
export const NO_DELEGATED_LOGINS: {
  serverLoginCallbacks: ServerLoginCallbacks;
  endpointParameters: ReadonlySet<string>;
  checkRequest: () => Promise<void>;
  directRedirect: () => Promise<undefined>;
  silentRedirect: () => Promise<undefined>;
  rateLimits: Pick<RateLimits, 'takeFrom' | 'spend'>;
  strangersOutbound: Pick<Outbound, 'fetch'>;
  actions: Actions;
} = {
  endpointParameters: new Set(),
  directRedirect: async () => undefined,
  silentRedirect: async () => undefined,
  rateLimits: { takeFrom: async () => undefined, spend: async () => true },
  strangersOutbound: createOutbound({ rules: outboundRules([]) }),
  actions: {
    isBound: () => false,
    newExecution: () => '',
    recordRefusal: () => undefined,
    recordDropped: () => undefined,
    run: async () => {
      throw new Error('no action is bound');
    },
  },
  serverLoginCallbacks: {
    of: () => [],
    has: () => false,
    isWithoutConsent: () => false,
    protocolOf: () => undefined,
    actOf: () => undefined,
  },
  checkRequest: async () => {},
};

/** Without client certificates. */
export const NO_CERTIFICATES = { certificates: clientCertificates(Date.now) };
