// Schemas of parameters with a description, from which the API document is made.
import { z } from 'zod';

export function required(description: string) {
  return z.string().describe(description);
}

export function optional(description: string) {
  return z.string().optional().describe(description);
}

/** Describes a parameter that the schema does not check, because the endpoint has its own errors for it. */
export function unchecked(description: string, type: string | string[] = 'string') {
  return z.unknown().optional().meta({ type, description });
}

export function parameterNames(schema: z.core.$ZodType | undefined): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(parameterNames);
  if (schema instanceof z.ZodIntersection) return [schema.def.left, schema.def.right].flatMap(parameterNames);
  if (schema instanceof z.ZodPipe) return parameterNames(schema.def.in);
  return [];
}

/** Body parameters for client authentication without HTTP Basic (RFC 6749 §2.3.1, RFC 7523 §2.2). */
export const CLIENT_FIELDS = {
  client_id: unchecked('The application.'),
  client_secret: unchecked('Its secret, if it has one and sends no `Authorization` header.'),
  client_assertion: unchecked('A JWT signed with its key (RFC 7523), instead of a secret.'),
  client_assertion_type: unchecked('`urn:ietf:params:oauth:client-assertion-type:jwt-bearer`'),
};
