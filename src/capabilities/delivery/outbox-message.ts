// A message of the development outbox. This file imports nothing of ours, because its type is published with
// `gatehouse/testing`.
import { z } from 'zod';

export const messageSchema = z.object({
  to: z.string(),
  channel: z.enum(['email', 'sms']),
  subject: z.string().optional(),
  text: z.string(),
  html: z.string().optional(),
  code: z.string().optional(),
  link: z.string().optional(),
  /** ISO 8601. */
  at: z.string(),
});

/** A stored message; `id` is its file's name. */
export type OutboxMessage = z.output<typeof messageSchema> & { id: string };
