"""forward.py listen PORT SOCKET | forward.py connect SOCKET PORT: joins a port of 127.0.0.1 to a port of 127.0.0.1 in another network
namespace, by a socket in the file system, which both see. For servers that listen on all interfaces: in a namespace of their own
nobody else reaches them. listen takes connections on PORT and hands them to SOCKET; connect takes them there.
"""

import asyncio
import os
import sys


async def pour(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side went away, and the other learns of it by the close
    finally:
        writer.close()


def join(dial):
    async def joined(reader, writer):
        try:
            far_reader, far_writer = await dial()
        except OSError:
            writer.close()
            return
        await asyncio.gather(pour(reader, far_writer), pour(far_reader, writer))

    return joined


async def main(verb, one, other):
    if verb == "listen":
        server = await asyncio.start_server(join(lambda: asyncio.open_unix_connection(other)), "127.0.0.1", int(one))
    else:
        os.umask(0o077)
        server = await asyncio.start_unix_server(join(lambda: asyncio.open_connection("127.0.0.1", int(other))), one)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
