// The member `password_options` of a database connection's options.
import { z } from 'zod';

/** The kinds of characters that a password may be required to contain. */
export const CHARACTER_TYPES = ['lowercase', 'uppercase', 'number', 'special'] as const;
export type CharacterType = (typeof CHARACTER_TYPES)[number];

const allowance = z.enum(['allow', 'block']).default('allow');

const complexity = z
  .looseObject({
    min_length: z.number().int().min(1).max(72).default(8),
    character_types: z.array(z.enum(CHARACTER_TYPES)).max(CHARACTER_TYPES.length).default([]),
    character_type_rule: z.enum(['all', 'three_of_four']).default('all'),
    /** Three equal characters in a row. */
    identical_characters: allowance,
    /** Three consecutive characters, as in `abc` or `321`. */
    sequential_characters: allowance,
    max_length_exceeded: z.enum(['error', 'truncate']).default('error'),
  })
  .refine(
    ({ character_types: types, character_type_rule: rule }) =>
      rule === 'all' || CHARACTER_TYPES.every((type) => types.includes(type)),
    { path: ['character_type_rule'], message: 'three_of_four needs all four character_types' },
  );

export const passwordOptionsSchema = z.looseObject({
  complexity: complexity.prefault({}),
  history: z
    .looseObject({ active: z.boolean().default(false), size: z.number().int().min(1).max(24).default(5) })
    .prefault({}),
  dictionary: z
    .looseObject({
      active: z.boolean().default(false),
      default: z.enum(['en_10k', 'en_100k']).default('en_10k'),
      custom: z.array(z.string().max(50)).max(200).default([]),
    })
    .prefault({}),
  profile_data: z
    .looseObject({
      active: z.boolean().default(false),
      /** Members of a user, or of their metadata: `user_metadata.first`. */
      blocked_fields: z.array(z.string().min(1).max(100)).max(12).default([]),
    })
    .prefault({}),
});
