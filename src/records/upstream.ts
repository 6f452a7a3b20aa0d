// What connections to upstream identity providers have in common, whatever their protocol.
import { z } from 'zod';

/** Returns options without members that are null, which tools send for unset members. */
export function withoutNull(options: unknown): unknown {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options;
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}

/** When attributes from a provider overwrite the user's profile. */
export const rootAttributes = z.enum(['on_each_login', 'on_first_login', 'never_on_login']);

export type RootAttributes = z.infer<typeof rootAttributes>;

/** A parameter for the provider: a fixed value, or that of the authorization request's parameter `alias`. */
const upstreamParameter = z.union([
  z.strictObject({ value: z.string().max(1024) }),
  z.strictObject({ alias: z.string().min(1).max(100) }),
]);

/** The options that all redirecting strategies have. */
export const upstreamOptions = {
  set_user_root_attributes: rootAttributes.default('on_each_login'),
  /** Attributes of the profile that are not stored. */
  non_persistent_attrs: z.array(z.string()).max(1000).default([]),
  upstream_params: z.record(z.string().min(1).max(100), upstreamParameter).default({}),
  icon_url: z
    .string()
    .max(255)
    .refine((url) => url === '' || (URL.canParse(url) && new URL(url).protocol === 'https:'), {
      message: 'must be an https address',
    })
    .optional(),
  domain_aliases: z.array(z.string().toLowerCase()).max(1000).optional(),
};

const upstreamOptionsSchema = z.looseObject(upstreamOptions);

/** Returns the options that all redirecting strategies have, with defaults. */
export function commonOptions(options: unknown): z.infer<typeof upstreamOptionsSchema> {
  return upstreamOptionsSchema.parse(withoutNull(options));
}

const knownRootAttributes = rootAttributes.catch('on_each_login');

/** Returns when attributes from elsewhere overwrite the profile of a connection's users. */
export function rootAttributesOf({
  options,
}: {
  options: Readonly<Record<string, unknown>>;
}): RootAttributes {
  return knownRootAttributes.parse(options.set_user_root_attributes);
}
