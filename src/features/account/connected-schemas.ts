// Bodies and answers of connected accounts in the My Account API.
import { z } from 'zod';

const scopeToken = z
  .string()
  .max(300)
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'is no scope (RFC 6749 §3.3)');

export const connectBody = z.object({
  connection: z.string().max(128),
  scopes: z.array(scopeToken).max(50).default([]).describe('Scopes in addition to those of the connection.'),
  redirect_uri: z.string().max(2000).describe('A callback of the application.'),
  state: z.string().max(2000).optional(),
  code_challenge: z
    .string()
    .regex(/^[\w-]{43}$/, 'is no challenge of S256 (RFC 7636 §4.2)')
    .optional(),
  code_challenge_method: z.enum(['S256']).optional(),
  authorization_params: z
    .record(z.string().min(1).max(100), z.union([z.string().max(1024), z.number(), z.boolean()]))
    .refine((one) => Object.keys(one).length <= 30, 'has too many members')
    .optional()
    .describe('Further parameters for the provider.'),
});
export const connectAnswer = z.object({
  connect_uri: z.string(),
  connect_params: z.object({ ticket: z.string() }).describe('For the query of `connect_uri`.'),
  auth_session: z.string().describe('For `/complete`, with a token of the same login.'),
  expires_in: z.number().describe('Lifetime of the ticket, in seconds.'),
});
export const completeBody = z.object({
  auth_session: z.string().max(100),
  connect_code: z.string().max(100),
  redirect_uri: z.string().max(2000),
  code_verifier: z.string().max(128).optional(),
});
export const connectedAnswer = z.object({
  id: z.string(),
  connection: z.string(),
  access_type: z.literal('offline'),
  scopes: z.array(z.string()),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
});
export const accountsAnswer = z.object({
  accounts: z.array(connectedAnswer),
  next: z.string().optional(),
});
export const connectionsAnswer = z.object({
  connections: z.array(z.object({ name: z.string(), strategy: z.string(), scopes: z.array(z.string()) })),
  next: z.string().optional(),
});
export const pageQuery = z.object({
  from: z.string().max(255).optional().describe('`next` of the previous page.'),
  take: z.coerce.number().int().min(1).max(100).optional().describe('How many items a page has.'),
});
export const accountsQuery = pageQuery.extend({
  connection: z.string().max(128).optional().describe('Only accounts of the connection with this name.'),
});
