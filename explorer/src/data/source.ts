/** Files of results folders: from the server of `raddle view`, or kept in the page itself. */

import type { AsyncBuffer } from "hyparquet";

/** A results folder. */
export interface Source {
  readonly name: string;
  /** Whether the folder has a file of this name. */
  has(file: string): boolean;
  /** Its bytes, read as they are needed. */
  open(file: string): Promise<AsyncBuffer>;
  /** What was left out of the page, in words; empty where all is there. */
  readonly leftOut: readonly string[];
}

interface Listing {
  /** Name of the lab that the page is about, instead of folders. */
  lab?: string;
  folders: {
    name: string;
    files: Record<string, number>;
    left_out?: string[];
    /** Contents in base64, where the page holds them. */
    contents?: Record<string, string>;
  }[];
}

/** Files up to this size are fetched whole: a request costs more than the bytes. */
const WHOLE = 4 << 20;

/** What this page is about: results folders, or a lab that is up. */
export async function subject(): Promise<readonly Source[] | { lab: string }> {
  const held = JSON.parse(document.getElementById("held")?.textContent ?? "null") as Listing | null;
  const listing = held ?? ((await (await asked("api/folders")).json()) as Listing);
  if (listing.lab !== undefined) return { lab: listing.lab };
  return listing.folders.map((folder, place) => ({
    name: folder.name,
    leftOut: folder.left_out ?? [],
    has: (file: string) => file in folder.files,
    open: (file: string) => {
      const contents = folder.contents?.[file];
      if (contents !== undefined) return Promise.resolve(decoded(contents));
      return remote(`api/files/${place}/${file}`, folder.files[file]);
    },
  }));
}

function decoded(base64: string): AsyncBuffer {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return whole(bytes.buffer);
}

function whole(buffer: ArrayBuffer): AsyncBuffer {
  return {
    byteLength: buffer.byteLength,
    slice: (start: number, end?: number) => buffer.slice(start, end),
  };
}

async function remote(url: string, size: number): Promise<AsyncBuffer> {
  if (size <= WHOLE) return whole(await (await asked(url)).arrayBuffer());
  return {
    byteLength: size,
    slice: async (start: number, end = size) => {
      const range = { headers: { Range: `bytes=${start}-${end - 1}` } };
      return (await asked(url, range)).arrayBuffer();
    },
  };
}

export async function asked(url: string, options?: RequestInit): Promise<Response> {
  const answer = await fetch(url, options);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return answer;
}
