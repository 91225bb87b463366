package parser
import ("testing";"fmt";"os";"bytes")
func TestZZDump(t *testing.T){
 f:=os.Getenv("C45"); if f=="" {t.Skip()}
 b,_:=os.ReadFile(f)
 p:=New(func(e Event){
  switch x:=e.Body.(type){
  case Failure: 
    fmt.Printf("%d %v %s FAILURE %v first=%.80q lines=%d\n",e.At.Line,e.Proc,e.Time,x.Record.Level,x.Record.First(),len(x.Record.Lines))
    for _,ex:=range x.Exceptions{fmt.Printf("     ex %s: %.160q at=%d frames=%d copies=%d wr=%v\n",ex.Class,ex.Text,ex.At.Line,len(ex.Frames),ex.Copies,ex.Wrapped)}
  case Notice: fmt.Printf("%d %v %s NOTICE %v lines=%d %.140q\n",e.At.Line,e.Proc,e.Time,x.Record.Level,len(x.Record.Lines),x.Record.First())
  default: fmt.Printf("%d %v %s %T %.200v\n",e.At.Line,e.Proc,e.Time,e.Body,fmt.Sprint(e.Body))
  }})
 off:=int64(0);n:=int64(0)
 for _,l:=range bytes.SplitAfter(b,[]byte("\n")){ if len(l)==0{continue}; n++; p.Line(Line{At:Pos{Line:n,Offset:off},Data:bytes.TrimSuffix(l,[]byte("\n"))}); off+=int64(len(l))}
 p.Flush()
}
