// Connections to well-known providers: the strategies, with the hosted service's names, and their options.
import { z } from 'zod';
import { endpoint, upstreamOptions, withoutNull } from './upstream.ts';

/**
 * The strategies, with what each provider identifies its users by. It must be an id of the account that nobody else ever gets:
 * not its name or address. The endpoints of each provider are in connections/social/.
 */
export const SOCIAL_USER_IDS = {
  amazon: 'user_id',
  bitbucket: 'uuid',
  box: 'id',
  digitalocean: 'uuid of the account',
  discord: 'id',
  dropbox: 'account_id',
  facebook: 'id, which is specific to the application',
  figma: 'id',
  fitbit: 'legacyUserId or healthUserId',
  github: 'id',
  gitlab: 'sub',
  line: 'sub',
  linkedin: 'sub',
  paypal: 'user_id',
  'paypal-sandbox': 'user_id',
  salesforce: 'user_id',
  'salesforce-sandbox': 'organization_id and user_id',
  slack: 'team_id and user_id',
  spotify: 'id',
  twitch: 'id',
  twitter: 'id',
  windowslive: 'id of Microsoft Graph',
  wordpress: 'ID',
  yahoo: 'sub',
} as const;

export type SocialStrategyName = keyof typeof SOCIAL_USER_IDS;

export const SOCIAL_STRATEGIES = Object.keys(SOCIAL_USER_IDS) as SocialStrategyName[];

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
