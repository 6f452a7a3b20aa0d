// Connections to well-known providers: the strategies, with the hosted service's names, and their options.
import { z } from 'zod';
import { endpoint } from './oauth2.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** The strategies. The endpoints of each provider are in connections/social/. */
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

/** Tools write an empty text for a value that is not set. */
const ownEndpoint = z.union([z.literal('').transform(() => undefined), endpoint]).optional();

const scopes = z.union([z.string().max(4096), z.array(z.string().max(255)).max(100)]);

/** The schema of the options, with defaults. Any further boolean stands for a scope. */
export const socialOptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...upstreamOptions,
    /**
     * Exports contain connections without a client id, for which the hosted service uses its own. A login here needs
     * one.
     */
    client_id: z.string().max(128).default(''),
    client_secret: z.string().max(1024).default(''),
    /** A text is separated by spaces or commas. */
    scope: scopes.default([]),
    freeform_scopes: scopes.default([]),
    /** The endpoints of a provider's software on another host (GitHub Enterprise, GitLab …). */
    authorizationURL: ownEndpoint,
    tokenURL: ownEndpoint,
    userInfoURL: ownEndpoint,
  }),
);

export type SocialOptions = z.output<typeof socialOptionsSchema>;
