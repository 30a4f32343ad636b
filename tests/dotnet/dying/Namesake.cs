// A type that has only the name of one of the framework's.
namespace System.Xml.XPath;

class XPathException() : Exception("stored")
{
    public override string Message => "computed";
}
