// Resources that management tools write and read, and that have no record type of their own: log streams, actions,
// custom domains …
import { z } from 'zod';
import type { Stored } from '../base/record.ts';
import { customDomainSchema } from './custom-domains.ts';
import { exchangeProfileSchema } from './exchange-profile-schema.ts';
import { sinkSecrets } from './log-streams.ts';
import { networkAclSchema } from './network-acls.ts';
import { phoneTemplateSchema } from './phone-templates.ts';
import { ruleSchema, ruleVariableSchema } from './rule-sections.ts';

export interface DocumentRecord extends Stored {
  kind: string;
  /** The name, if the resource has unique names. */
  name?: string;
  /** The resource as the API returns it, without the id. */
  body: Record<string, unknown>;
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
}

/**
 * The members that are secrets: of actions, of the targets of log streams, and of resources that are only stored for
 * tools.
 */
export const documentSecrets = [
  'body.secrets.*.value',
  'body.deployed_secrets.*.value',
  'body.versions.*.secrets.*.value',
  'body.setup',
  'body.credentials',
  'body.value',
  'body.values',
  'body.destination.configuration.webhook_authorization',
  ...sinkSecrets.map((name) => `body.sink.${name}`),
];

/** The default members of a new document. */
export const usualMembers = {
  action: {
    code: '',
    dependencies: [],
    secrets: [],
    runtime: 'node22',
    status: 'built',
    all_changes_deployed: false,
  },
  'action-module': {
    code: '',
    dependencies: [],
    secrets: [],
    all_changes_published: false,
  },
  rules: { enabled: true, stage: 'login_success' },
  'log-stream': { name: 'Log stream', status: 'active' },
  'custom-domain': { status: 'pending_verification', primary: true, tls_policy: 'recommended' },
  'network-acls': {},
  'branding/phone/templates': { channel: 'phone', customizable: true, disabled: false },
  theme: {},
} as const;

const text = z.string().min(1).max(255);
const members = z.record(z.string(), z.unknown());
const named = (name: string) =>
  members.refine((one) => typeof one[name] === 'string' && one[name] !== '', `needs a ${name}`);

/** Sections of the tenant file that are documents. Applying a file without a section leaves its documents unchanged. */
export const documentSections = {
  actions: z.array(named('name')).optional(),
  actionModules: z.array(named('name')).optional(),
  triggers: z.record(text, z.array(named('action_name'))).optional(),
  rules: z.array(members.and(ruleSchema)).optional(),
  rulesConfigs: z.array(ruleVariableSchema).optional(),
  tokenExchangeProfiles: z.array(exchangeProfileSchema).optional(),
  themes: z.array(members).max(1).optional(),
  logStreams: z.array(named('type')).optional(),
  customDomains: z.array(customDomainSchema).optional(),
  networkACLs: z.array(networkAclSchema.extend({ id: text.optional() })).optional(),
  phoneTemplates: z.array(phoneTemplateSchema).optional(),
};

/** Texts and parts of pages, beside the settings of prompts. */
export const promptSections = {
  customText: z.record(text, z.record(text, members)).optional(),
  partials: z.record(text, members).optional(),
};
