// Rules and their variables in the tenant file.
import { z } from 'zod';

/** The form of the names of variables. */
export const RULE_VARIABLE_KEY = /^[A-Za-z0-9_\-@*+:]{1,127}$/;

export const ruleSchema = z.looseObject({
  name: z.string().min(1).max(255),
  script: z.string().max(100_000),
  order: z.number().optional(),
  enabled: z.boolean().optional(),
});

export const ruleVariableSchema = z.strictObject({
  key: z.string().regex(RULE_VARIABLE_KEY),
  value: z.string().max(10_000),
});
