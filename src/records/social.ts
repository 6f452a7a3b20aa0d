// Connections to well-known providers: their strategies, in the hosted service's names, and their options.
import { z } from 'zod';
import { endpoint } from './oauth2.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** The strategies. What each provider's endpoints and answers are is in connections/social/. */
export const SOCIAL_STRATEGIES = [
  'amazon',
  'bitbucket',
  'box',
  'digitalocean',
  'discord',
  'dropbox',
  'facebook',
  'figma',
  'fitbit',
  'github',
  'gitlab',
  'line',
  'linkedin',
  'paypal',
  'paypal-sandbox',
  'salesforce',
  'salesforce-sandbox',
  'slack',
  'spotify',
  'twitch',
  'twitter',
  'windowslive',
  'wordpress',
  'yahoo',
] as const;

export type SocialStrategyName = (typeof SOCIAL_STRATEGIES)[number];

/** An empty text is how tools write what is not set. */
const ownEndpoint = z.union([z.literal('').transform(() => undefined), endpoint]).optional();

const scopes = z.union([z.string().max(4096), z.array(z.string().max(255)).max(100)]);

/** The options, as they are meant. Booleans that stand for scopes are any others. */
export const socialOptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...upstreamOptions,
    /** The hosted service has connections without one, for which it lends its own; here a login needs it. */
    client_id: z.string().max(128).default(''),
    client_secret: z.string().max(1024).default(''),
    /** Texts are separated by spaces or commas. */
    scope: scopes.default([]),
    freeform_scopes: scopes.default([]),
    /** A provider's software at a host of its owner's (GitHub Enterprise, GitLab …). */
    authorizationURL: ownEndpoint,
    tokenURL: ownEndpoint,
    userInfoURL: ownEndpoint,
  }),
);

export type SocialOptions = z.output<typeof socialOptionsSchema>;
