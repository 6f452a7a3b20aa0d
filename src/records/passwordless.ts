// The options of passwordless connections, strategies `email` and `sms`.
import { z } from 'zod';
import { isCallable } from '../http/outbound.ts';
import { withoutNull } from './upstream.ts';

/** E-mail domains whose users log in with the connection, if a client has several connections. */
export const domainAliases = z.array(z.string().toLowerCase()).optional();

const text = z.string().max(100_000).optional();

const parameters = z.record(z.string().max(100), z.union([z.string(), z.number(), z.boolean()]));

const members = {
  /** `totp` is the hosted service's name. It has nothing to do with RFC 6238. */
  totp: z
    .looseObject({
      /** Lifetime of a code or link, in seconds. */
      time_step: z.number().int().min(30).max(86_400).default(180),
      /** Number of digits of a code. */
      length: z.number().int().min(4).max(40).default(6),
    })
    .prefault({}),
  disable_signup: z.boolean().default(false),
  brute_force_protection: z.boolean().optional(),
  domain_aliases: domainAliases,
};

export const emailOptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...members,
    /** The message, in Liquid. Default: the built-in one. */
    email: z
      .preprocess(withoutNull, z.looseObject({ from: text, subject: text, body: text, syntax: text }))
      .optional(),
    /** Parameters of the authorization request that a link leads to, unless `/passwordless/start` sets its own. */
    authParams: z.union([z.literal(''), parameters]).optional(),
  }),
);

/** A boolean; tools write it as text too. */
const flag = z.union([z.boolean(), z.enum(['true', 'false', '']).transform((given) => given === 'true')]);

const gatewayAuthentication = z.looseObject({
  method: z.enum(['bearer']),
  subject: z.string().max(64).optional(),
  audience: z.string().max(128),
  secret: z.string().min(1).max(5120),
  secret_base64_encoded: flag.default(false),
});

type GatewayAuthentication = z.output<typeof gatewayAuthentication>;

/** Returns the key that is shared with a gateway; empty if the secret is not valid base64. */
export function gatewayKey({ secret, secret_base64_encoded: isEncoded }: GatewayAuthentication): Buffer {
  return Buffer.from(secret, isEncoded ? 'base64url' : 'utf8');
}

const GATEWAY = 'sms_gateway';

const smsMembers = {
  ...members,
  provider: z.enum(['twilio', GATEWAY, '']).optional(),
  /** The sender, in the provider's format. */
  from: text,
  template: text,
  twilio_sid: z.string().max(255).optional(),
  twilio_token: z.string().max(255).optional(),
  messaging_service_sid: z.string().max(255).optional(),
  gateway_url: z.string().max(2048).optional(),
  gateway_authentication: gatewayAuthentication.optional(),
  /** Whether the gateway gets data of the request that asked for the message. */
  forward_req_info: flag.default(false),
};

/**
 * For reading stored options: an invalid gateway, however it got there, is still the connection's provider, and no
 * other replaces it.
 */
const storedSmsOptionsSchema = z.preprocess(withoutNull, z.looseObject(smsMembers));

export const smsOptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...smsMembers,
    gateway_url: smsMembers.gateway_url.refine(
      (url = '') => url === '' || isCallable(url),
      'must be an http or https address without user and password: gateway_authentication says who calls',
    ),
    gateway_authentication: gatewayAuthentication
      .refine((given) => gatewayKey(given).length > 0, {
        message: 'holds nothing in base64',
        path: ['secret'],
      })
      .optional(),
  }),
);

export function passwordlessOptions({ options }: { options: unknown }): z.output<typeof common> {
  return common.parse(withoutNull(options));
}

const common = z.looseObject({ ...members, authParams: parameters.catch({}).default({}) });

/** The provider that sends the messages of an `sms` connection. */
export type SmsProvider =
  | {
      kind: 'twilio';
      accountSid: string;
      authToken: string;
      from: string | undefined;
      messagingServiceSid: string | undefined;
    }
  | {
      kind: 'gateway';
      url: string;
      authentication: GatewayAuthentication | undefined;
      forwardsRequest: boolean;
    };

// docs/decisions/passwordless-messages.md#the-sms-provider-of-an-sms-connection-is-used-if-the-process-has-none
/** Returns the provider that the options name; undefined if they name none, or lack what it needs. */
export function smsProviderOf(options: unknown): SmsProvider | undefined {
  const parsed = storedSmsOptionsSchema.safeParse(options).data;
  if (parsed === undefined) return undefined;
  if (parsed.provider === GATEWAY) {
    const { gateway_url: url, gateway_authentication: authentication, forward_req_info } = parsed;
    return url ? { kind: 'gateway', url, authentication, forwardsRequest: forward_req_info } : undefined;
  }
  const { twilio_sid: accountSid, twilio_token: authToken, from, messaging_service_sid: service } = parsed;
  if (!accountSid || !authToken || (!from && !service)) return undefined;
  return {
    kind: 'twilio',
    accountSid,
    authToken,
    from: from || undefined,
    messagingServiceSid: service || undefined,
  };
}
